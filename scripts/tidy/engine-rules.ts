import { engineExceptions, engineRoom } from "./policy.ts";
import { type CodeFile, type Finding, type Project, type Rule, servesTests } from "./project.ts";
import type { Token } from "./tokens.ts";

/** What a driver is asked by the operations engine alone. */
const engineCalls: ReadonlySet<string> = new Set(["begin", "look", "recall", "cancel"]);
/** What decides when something that failed is tried again. */
const pacing = "nextAttempt";
/** Whose calls these are: `memory.begin()` of something else is none of them. */
const driver = /^(?:\w+D|d)river$/;

/** Times of a record or a failure, and who has to read them. */
const engineTimes: Readonly<Record<string, string>> = {
  deadline: "reads a deadline: windowLeftMs measures it on the clock in the record.",
  since: "reads the beginning of a record: ageMs measures it on the clock in the record.",
  nextRetryAt: "reads a retry time: retryWaitMs, heldStep and heldLookMs do.",
};

/** Effects on hypervisors, their windows and their retries are the operations engine's alone. */
export const engineOnly: Rule = (project) => {
  return controllersOf(project).flatMap((file) => {
    const { path } = file;
    return [...driverCalls(file), ...takenCalls(file), ...pacingImports(file), ...timeReads(file)]
      .filter(({ word }) => !isExcepted(path, word))
      .map(({ line, message }) => ({ path, line, rule: "engine-only", message }));
  });
};

/** A use of what is the engine's. */
interface Use extends Pick<Finding, "line" | "message"> {
  readonly word: string;
}

function controllersOf(project: Project): CodeFile[] {
  return [...project.code.values()].filter(({ path }) => {
    const isController = path.startsWith("src/controllers/") && !path.startsWith(engineRoom);
    return isController && !servesTests(path);
  });
}

function isExcepted(path: string, word: string): boolean {
  return engineExceptions.some((one) => one.path === path && one.words.includes(word));
}

/** `driver.begin(…)`, `connection.driver.look(…)`, `driver.cancel?.(…)`, `driver["recall"](…)`. */
function driverCalls({ code }: CodeFile): Use[] {
  const aliases = aliasesOf(code, (word) => driver.test(word));
  return code.flatMap(({ kind, text, line }, index) => {
    if (kind !== "word" || !(driver.test(text) || aliases.has(text))) return [];
    const name = memberAfter(code, index);
    return name !== undefined && engineCalls.has(name)
      ? [callOf(`${text}.${name}`, name, line)]
      : [];
  });
}

function callOf(what: string, word: string, line: number): Use {
  const message = `calls ${what}: give resumeOperation or performOperation a Subject.`;
  return { line, word, message };
}

/** `const { begin, look: see } = driver`. */
function takenCalls({ code }: CodeFile): Use[] {
  const aliases = aliasesOf(code, (word) => driver.test(word));
  return code.flatMap(({ text }, index) => {
    if (text !== "}" || code[index + 1]?.text !== "=") return [];
    const source = code[endOfPath(code, index + 2)]?.text ?? "";
    if (!driver.test(source) && !aliases.has(source)) return [];
    return bracesBefore(code, index)
      .filter((token) => engineCalls.has(token.text))
      .map((token) => callOf(`${source}.${token.text}`, token.text, token.line));
  });
}

/**
 * Other names of what a test knows by its name: `const hv = turn.driver`, `{ driver: hv }`, and
 * `hv: HypervisorDriver`. An alias of an alias is one too.
 */
function aliasesOf(
  code: readonly Token[],
  isMeant: (word: string) => boolean,
): ReadonlySet<string> {
  const aliases = new Set<string>();
  const isKnown = (word: string): boolean => isMeant(word) || aliases.has(word);
  for (const [index, token] of code.entries()) {
    if (token.kind !== "word") continue;
    if (isKnown(token.text)) addRenamed(aliases, code, index);
    if (isNamedFor(code, index, isKnown)) aliases.add(token.text);
  }
  return aliases;
}

/** `{ driver: hv } = …` and `({ driver: hv }: Turn)`, but not the same as a value. */
function addRenamed(aliases: Set<string>, code: readonly Token[], index: number): void {
  const [colon, name, next] = code.slice(index + 1, index + 4);
  const isRenamed = name?.kind === "word" && /^[,}=]$/.test(next?.text ?? "");
  if (colon?.text === ":" && isRenamed && isBound(code, index)) aliases.add(name.text);
}

/** Whether the braces around a token take a value apart. */
function isBound(code: readonly Token[], index: number): boolean {
  let depth = 1;
  for (let at = index; at < code.length; at += 1) {
    if (code[at]?.text === "{") depth += 1;
    if (code[at]?.text === "}") depth -= 1;
    if (depth === 0) return /^[=:]$/.test(code[at + 1]?.text ?? "");
  }
  return false;
}

/** `hv = turn.driver;` and `hv: HypervisorDriver`. */
function isNamedFor(
  code: readonly Token[],
  index: number,
  isKnown: (word: string) => boolean,
): boolean {
  const sign = code[index + 1]?.text;
  if (sign === ":") return isKnown(driverType(code, index + 2));
  if (sign !== "=") return false;
  const end = endOfPath(code, index + 2);
  return isKnown(textAt(code, end)) && !/^[.(?[]/.test(textAt(code, end + 1));
}

/** `HypervisorDriver`, also in the angle brackets of another type. */
function driverType(code: readonly Token[], index: number): string {
  const name = textAt(code, textAt(code, index + 1) === "<" ? index + 2 : index);
  return name.endsWith("Driver") ? name : "";
}

function textAt(code: readonly Token[], index: number): string {
  return code[index]?.text ?? "";
}

/** The last word of `a.b?.c`. */
function endOfPath(code: readonly Token[], start: number): number {
  let at = start;
  while (/^\??\.$/.test(code[at + 1]?.text ?? "") && code[at + 2]?.kind === "word") at += 2;
  return at;
}

/** The tokens between the brace at an index and the one that opens it. */
function bracesBefore(code: readonly Token[], close: number): readonly Token[] {
  let depth = 0;
  for (let at = close; at >= 0; at -= 1) {
    if (code[at]?.text === "}") depth += 1;
    if (code[at]?.text === "{") depth -= 1;
    if (depth === 0) return code.slice(at + 1, close);
  }
  return [];
}

/** The name of the member that is taken from a word, also by `?.` or brackets. */
function memberAfter(code: readonly Token[], index: number): string | undefined {
  const [dot, name] = [code[index + 1]?.text, code[index + 2]];
  if (dot === "." || dot === "?.") return name?.text === "[" ? quoted(code[index + 3]) : name?.text;
  return dot === "[" ? quoted(name) : undefined;
}

function quoted(token: Token | undefined): string | undefined {
  return token?.kind === "string" ? token.text.slice(1, -1) : undefined;
}

function pacingImports({ module }: CodeFile): Use[] {
  return module.references
    .filter(({ names }) => names.includes(pacing))
    .map(({ line }) => {
      const message = `imports ${pacing}: judgeFailure counts attempts, from the status alone.`;
      return { line, word: pacing, message };
    });
}

/** `Date.parse(record.since)`, `new Date(failure.nextRetryAt)`, `nextRetryAt < now`. */
function timeReads({ code }: CodeFile): Use[] {
  const words = Object.keys(engineTimes);
  const aliases = words.map((word) => [word, aliasesOf(code, (one) => one === word)] as const);
  const wordOf = (at: number): string | undefined => {
    const { text = "" } = code[at] ?? {};
    if (text === "since" && code[at - 2]?.text === "waitingFor") return undefined;
    const own = words.find((word) => text === word);
    return own ?? aliases.find(([, names]) => names.has(text))?.[0];
  };
  return code.flatMap(({ line }, index) => {
    const read = parsedAt(code, index)
      .map(wordOf)
      .find((word) => word !== undefined);
    const compared = isCompared(code, index) ? wordOf(index) : undefined;
    const word = read ?? (compared === "since" ? undefined : compared);
    return word === undefined ? [] : [{ line, word, message: engineTimes[word] ?? "" }];
  });
}

/** The places of what is made a number here: the arguments of `Date.parse(…)` and `new Date(…)`. */
function parsedAt(code: readonly Token[], index: number): readonly number[] {
  const text = (length: number): string => {
    return code
      .slice(index, index + length)
      .map((token) => token.text)
      .join(" ");
  };
  if (text(4) === "Date . parse (") return argumentsFrom(code, index + 4);
  return text(3) === "new Date (" ? argumentsFrom(code, index + 3) : [];
}

/** Times are texts of one form, so that they can be compared as they are. */
function isCompared(code: readonly Token[], index: number): boolean {
  const isSign = (token: Token | undefined): boolean => /^[<>]=?$/.test(token?.text ?? "");
  return isSign(code[index + 1]) || isSign(code[index - 1]);
}

/** The places of the tokens up to the bracket that closes the one before them. */
function argumentsFrom(code: readonly Token[], start: number): readonly number[] {
  let depth = 1;
  for (let at = start; at < code.length; at += 1) {
    if (code[at]?.text === "(") depth += 1;
    if (code[at]?.text === ")") depth -= 1;
    if (depth === 0) return Array.from({ length: at - start }, (_, index) => start + index);
  }
  return [];
}
