/** One alternative of an Accept header. */
export interface AcceptClause {
  /** In lower case: "application/json". */
  readonly type: string;
  readonly quality: number;
  readonly parameters: ReadonlyMap<string, string>;
}

/** Alternatives beyond these are ignored. client-go sends three. */
const clausesMax = 32;

/** The alternatives in order of preference: by quality, then as written, wildcards last. */
export function parseAccept(header: string): AcceptClause[] {
  const clauses = header.split(",", clausesMax).map(parseClause);
  return clauses
    .filter((clause) => clause.type !== "" && clause.quality > 0)
    .sort((left, right) => right.quality - left.quality || wildness(left) - wildness(right));
}

/** The media type of a Content-Type header in lower case, without its parameters. */
export function mediaTypeOf(contentType: string | undefined): string {
  return (contentType ?? "").split(";", 1)[0]?.trim().toLowerCase() ?? "";
}

function parseClause(text: string): AcceptClause {
  const [type = "", ...rest] = text.split(";").map((part) => part.trim());
  const parameters = new Map<string, string>();
  for (const part of rest) {
    const equals = part.indexOf("=");
    if (equals > 0) parameters.set(part.slice(0, equals).trim(), part.slice(equals + 1).trim());
  }
  const quality = Number(parameters.get("q") ?? 1);
  parameters.delete("q");
  return { type: type.toLowerCase(), quality: Number.isNaN(quality) ? 1 : quality, parameters };
}

function wildness({ type }: AcceptClause): number {
  if (type === "*/*") return 2;
  return type.endsWith("/*") ? 1 : 0;
}
