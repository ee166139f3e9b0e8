import { ApiError, badRequest } from "../../kernel/status.ts";
import { parseAccept, type AcceptClause } from "./accept.ts";

/** What the client wants to be told, and how. */
export interface Output {
  readonly encoding: "json" | "yaml";
  readonly pretty: boolean;
  readonly shape: Shape;
}

export type Shape =
  | { readonly as: "object" }
  | { readonly as: "partial"; readonly version: MetaVersion }
  | { readonly as: "table"; readonly version: MetaVersion; readonly include: IncludeObject };

/** Versions of meta.k8s.io. The forms are the same in both. */
export type MetaVersion = "v1" | "v1beta1";
export type IncludeObject = "Metadata" | "Object" | "None";

/** What the answer is: one object, several, or a stream of changes. */
export type AnswerForm = "one" | "list" | "watch" | "watchlist";

interface Asked {
  readonly headers: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
}

/**
 * Picks the first form in the Accept header that is served, as kube-apiserver does: a clause whose
 * media type or transformation is unknown is skipped. Throws 406 when none is left.
 */
export function negotiate(asked: Asked, form: AnswerForm): Output {
  const header = asked.headers["accept"] ?? "";
  const clauses = header === "" ? [anything] : parseAccept(header);
  for (const clause of clauses) {
    const encoding = encodingOf(clause, form);
    const kind = encoding && transformOf(clause, form);
    if (!encoding || !kind) continue;
    return { encoding, pretty: isPretty(asked, clause), shape: shapeOf(kind, form, asked.query) };
  }
  throw notAcceptable(form);
}

const anything: AcceptClause = { type: "*/*", quality: 1, parameters: new Map() };

function encodingOf(clause: AcceptClause, form: AnswerForm): Output["encoding"] | undefined {
  switch (clause.type) {
    case "*/*":
    case "application/*":
    case "application/json":
      return "json";
    case "application/yaml":
      // A stream of YAML documents is something no client of Kubernetes reads.
      return form === "one" || form === "list" ? "yaml" : undefined;
    default:
      return undefined;
  }
}

interface Transform {
  readonly kind: string;
  readonly version: MetaVersion;
}

/** The transformation a clause asks for; undefined where it asks for one that is not served. */
function transformOf(clause: AcceptClause, form: AnswerForm): Transform | "none" | undefined {
  const { parameters } = clause;
  if (!["as", "g", "v"].some((name) => parameters.has(name))) return "none";
  const kind = parameters.get("as") ?? "";
  const version = parameters.get("v");
  if (parameters.get("g") !== "meta.k8s.io" || !transforms.has(kind)) return undefined;
  if (version !== "v1" && version !== "v1beta1") return undefined;
  // A table cannot carry the annotation that ends the initial events.
  return kind === "Table" && form === "watchlist" ? undefined : { kind, version };
}

const transforms = new Set(["Table", "PartialObjectMetadata", "PartialObjectMetadataList"]);

function shapeOf(transform: Transform | "none", form: AnswerForm, query: URLSearchParams): Shape {
  if (transform === "none") return { as: "object" };
  const { kind, version } = transform;
  if (kind === "Table") return { as: "table", version, include: includeOf(query) };
  const wanted = form === "list" ? "PartialObjectMetadataList" : "PartialObjectMetadata";
  if (kind === wanted) return { as: "partial", version };
  const is = form === "list" ? "is a list" : "is not a list";
  throw refusal(`you requested ${kind}, but the requested object ${is}`);
}

function includeOf(query: URLSearchParams): IncludeObject {
  const include = query.get("includeObject") ?? "";
  if (include === "Object" || include === "None" || include === "Metadata") return include;
  if (include === "") return "Metadata";
  const why = "must be 'Metadata', 'Object', 'None', or empty";
  const value = JSON.stringify(include);
  throw badRequest(
    `Unable to convert to Table as requested: includeObject: Invalid value: ${value}: ${why}`,
  );
}

function isPretty({ headers, query }: Asked, clause: AcceptClause): boolean {
  if (clause.parameters.get("pretty") === "1") return true;
  const asked = query.get("pretty") ?? "";
  if (asked !== "") return ["1", "t", "T", "true", "TRUE", "True"].includes(asked);
  // A person is reading.
  return /^(curl|Wget|Mozilla\/5\.0)/.test(headers["user-agent"] ?? "");
}

function notAcceptable(form: AnswerForm): ApiError {
  const isStream = form === "watch" || form === "watchlist";
  const accepted = isStream
    ? "application/json;stream=watch"
    : "application/json, application/yaml";
  return refusal(`only the following media types are accepted: ${accepted}`);
}

function refusal(message: string): ApiError {
  return new ApiError(406, "NotAcceptable", message);
}
