import { badRequest, type ApiError } from "./status.ts";

/** One step of a path, from a value to those it leads to. */
export type PathStep =
  | { readonly take: "member"; readonly name: string }
  | { readonly take: "index"; readonly index: number }
  /** `[*]`: the elements of a list. */
  | { readonly take: "elements" }
  /** `.*`: the elements of a list, or the values of a map. */
  | { readonly take: "values" }
  | { readonly take: "filter"; readonly filter: PathFilter };

/** `@.left operator right`, or only `@.left`, which must exist. */
export interface PathFilter {
  readonly left: readonly PathStep[];
  readonly operator: "==" | "!=" | "<" | "<=" | ">" | ">=" | "exists";
  readonly right: string | number | boolean;
}

// Each is tried where the one before it ended. None can match the empty text.
const member = /\.((?:\\.|[^\s.,[\]$@{}\\])+)/y;
const quoted = /\[(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)")\]/y;
const index = /\[(-?[0-9]{1,9})\]/y;
const elements = /\[\*\]/y;
const filter = /\[\?\(((?:'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|[^'")])*)\)\]/y;

/** Reads a path; throws an ApiError 400 for what is none of ours. */
export function parseJsonPath(path: string): PathStep[] {
  const inner = path.startsWith("{") && path.endsWith("}") ? path.slice(1, -1) : path;
  const text = inner.startsWith("$") ? inner.slice(1) : inner;
  return parseSteps(text, path);
}

function parseSteps(text: string, path: string): PathStep[] {
  const steps: PathStep[] = [];
  let position = 0;
  while (position < text.length) {
    const { step, length } = parseStep(text, position, path);
    steps.push(step);
    position += length;
  }
  return steps;
}

function parseStep(
  text: string,
  position: number,
  path: string,
): { step: PathStep; length: number } {
  const at = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = position;
    return pattern.exec(text);
  };
  let found = at(member);
  if (found) return { step: memberStep(found[1] ?? ""), length: found[0].length };
  found = at(quoted);
  if (found) {
    const name = unescaped(found[1] ?? found[2] ?? "");
    return { step: { take: "member", name }, length: found[0].length };
  }
  found = at(index);
  if (found) return { step: { take: "index", index: Number(found[1]) }, length: found[0].length };
  found = at(elements);
  if (found) return { step: { take: "elements" }, length: found[0].length };
  found = at(filter);
  if (found === null) throw unrecognized(path);
  const step: PathStep = { take: "filter", filter: parseFilter(found[1] ?? "", path) };
  return { step, length: found[0].length };
}

function memberStep(name: string): PathStep {
  return name === "*" ? { take: "values" } : { take: "member", name: unescaped(name) };
}

function parseFilter(text: string, path: string): PathFilter {
  const found = /^\s*@([^!<>=]*?)\s*(?:(==|!=|<=|>=|<|>)\s*(.*?)\s*)?$/.exec(text);
  if (found === null) throw unrecognized(path);
  const left = parseSteps(found[1] ?? "", path);
  const operator = operators.find((known) => known === found[2]);
  if (operator === undefined) return { left, operator: "exists", right: true };
  return { left, operator, right: parseLiteral(found[3] ?? "", path) };
}

const operators = ["==", "!=", "<", "<=", ">", ">="] as const;

function parseLiteral(text: string, path: string): string | number | boolean {
  if (text === "true" || text === "false") return text === "true";
  if (/^[+-]?[0-9]+(\.[0-9]+)?$/.test(text)) return Number(text);
  const string = /^(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)")$/.exec(text);
  if (string === null) throw unrecognized(path);
  return unescaped(string[1] ?? string[2] ?? "");
}

function unescaped(text: string): string {
  return text.replaceAll(/\\(.)/g, "$1");
}

function unrecognized(path: string): ApiError {
  return badRequest(`unrecognized JSON path ${JSON.stringify(path)}`);
}
