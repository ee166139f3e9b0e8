import { CelCostError, CelError } from "../errors.ts";
import type { Definition } from "../overload.ts";
import { CelList, typeNameOf, type Value } from "../values.ts";
import * as arg from "./arguments.ts";
import { formatText } from "./format-text.ts";

/** CEL's string extension, version 2. Positions count code points. */
export const stringLibrary: readonly Definition[] = [
  ["string.charAt(int): string", (v, at) => charAt(arg.text(v), arg.index(at))],
  ["string.indexOf(string): int", (v, part) => indexOf(arg.text(v), arg.text(part), 0), searchCost],
  ["string.indexOf(string, int): int", indexOfFrom, searchCost],
  [
    "string.lastIndexOf(string): int",
    (v, part) => lastIndexOf(arg.text(v), arg.text(part)),
    searchCost,
  ],
  ["string.lastIndexOf(string, int): int", lastIndexOfFrom, searchCost],
  ["string.lowerAscii(): string", (v) => lowerAscii(arg.text(v)), arg.traversal()],
  ["string.upperAscii(): string", (v) => upperAscii(arg.text(v)), arg.traversal()],
  ["string.replace(string, string): string", replaceAll, arg.traversal(2)],
  ["string.replace(string, string, int): string", replaceSome, arg.traversal(2)],
  ["string.split(string): list<string>", (v, by) => split(v, by, -1), arg.traversal(2)],
  ["string.split(string, int): list<string>", splitSome, arg.traversal(2)],
  ["string.substring(int): string", (v, from) => substring(v, from, undefined), arg.traversal()],
  ["string.substring(int, int): string", substring, arg.traversal()],
  ["string.trim(): string", (v) => arg.text(v).replaceAll(edgeSpace, ""), arg.traversal()],
  ["list<string>.join(): string", (v) => join(arg.list(v), ""), joinCost],
  ["list<string>.join(string): string", (v, by) => join(arg.list(v), arg.text(by)), joinCost],
  ["string.format(list<dyn>): string", (v, args) => formatText(arg.text(v), arg.list(args)), walk],
  ["strings.quote(string): string", (v) => quote(arg.text(v)), walk],
];

// What Go's unicode.IsSpace holds for space; JavaScript's \s would add the byte order mark.
const edgeSpace =
  /^[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+|[\t-\r \u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+$/g;

function searchCost([subject]: readonly Value[]): number {
  return Math.floor(arg.sizeOf(subject) * 0.1);
}

function walk(args: readonly Value[]): number {
  return arg.traversal()(args);
}

/** Twice the length of what comes out. */
function joinCost([subject, by]: readonly Value[]): number {
  const list = arg.list(subject);
  const between = typeof by === "string" ? by.length * Math.max(0, list.size - 1) : 0;
  let length = between;
  for (let i = 0; i < list.size; i++) length += arg.sizeOf(list.at(i));
  return Math.ceil(length * 2 * 0.1);
}

function charAt(value: string, at: number): string {
  const chars = [...value];
  if (at < 0 || at > chars.length) throw new CelError(`index out of range: ${at}`);
  return chars[at] ?? "";
}

function indexOf(value: string, part: string, from: number): bigint {
  if (part === "") return BigInt(from);
  if (from < 0) throw new CelError(`index out of range: ${from}`);
  const head = [...value].slice(0, from).join("");
  const found = value.indexOf(part, head.length);
  return found < 0 || from >= arg.codePoints(value) ? -1n : positionOf(value, found);
}

function indexOfFrom(value?: Value, part?: Value, from?: Value): bigint {
  return indexOf(arg.text(value), arg.text(part), arg.index(from));
}

function lastIndexOf(value: string, part: string): bigint {
  if (part === "") return BigInt(arg.codePoints(value));
  const found = value.lastIndexOf(part);
  // An empty text has no last position to search from, and cel-go says so.
  if (value === "") throw new CelError("index out of range: -1");
  return found < 0 ? -1n : positionOf(value, found);
}

function lastIndexOfFrom(value?: Value, part?: Value, from?: Value): bigint {
  const [text, search, at] = [arg.text(value), arg.text(part), arg.index(from)];
  if (search === "") return BigInt(at);
  if (at < 0) throw new CelError(`index out of range: ${at}`);
  const chars = [...text];
  if (at >= chars.length) return -1n;
  const found = text.lastIndexOf(search, chars.slice(0, at).join("").length);
  return found < 0 ? -1n : positionOf(text, found);
}

function positionOf(value: string, offset: number): bigint {
  return BigInt(arg.codePoints(value.slice(0, offset)));
}

function lowerAscii(value: string): string {
  return value.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
}

function upperAscii(value: string): string {
  return value.replaceAll(/[a-z]+/g, (letters) => letters.toUpperCase());
}

function replaceAll(value?: Value, part?: Value, by?: Value): string {
  return replace([arg.text(value), arg.text(part), arg.text(by)], -1);
}

function replaceSome(...[value, part, by, limit]: Value[]): string {
  return replace([arg.text(value), arg.text(part), arg.text(by)], arg.index(limit));
}

/** No text that an expression makes is longer: Kubernetes charges for what it reads, not makes. */
const textMax = 10_000_000;

function replace([text, part, by]: [string, string, string], limit: number): string {
  const count = limit < 0 ? Infinity : limit;
  const matches = part === "" ? text.length + 1 : text.length / part.length;
  if (Math.min(matches, count) * by.length > textMax) throw new CelCostError();
  // An empty part matches before every character and at the end.
  return part === "" ? insertBefore(text, by, count) : splitText(text, part, count + 1).join(by);
}

function insertBefore(text: string, replacement: string, count: number): string {
  const chars = [...text];
  const pieces = chars.map((char, i) => (i < count ? replacement + char : char));
  return pieces.join("") + (count > chars.length ? replacement : "");
}

function split(value: Value | undefined, by: Value | undefined, limit: number): CelList {
  return CelList.of(splitText(arg.text(value), arg.text(by), limit));
}

function splitSome(value?: Value, by?: Value, limit?: Value): CelList {
  return split(value, by, arg.index(limit));
}

/** Go's SplitN: the last piece takes the rest. */
function splitText(text: string, by: string, limit: number): string[] {
  if (limit === 0) return [];
  const pieces = by === "" ? [...text] : text.split(by);
  if (limit < 0 || pieces.length <= limit) return pieces;
  return [...pieces.slice(0, limit - 1), pieces.slice(limit - 1).join(by)];
}

function substring(value?: Value, from?: Value, to?: Value): string {
  const chars = [...arg.text(value)];
  const start = arg.index(from);
  const end = to === undefined ? chars.length : arg.index(to);
  if (to !== undefined && start > end) {
    throw new CelError(`invalid substring range. start: ${start}, end: ${end}`);
  }
  if (start < 0 || start > chars.length) throw new CelError(`index out of range: ${start}`);
  if (end < 0 || end > chars.length) throw new CelError(`index out of range: ${end}`);
  return chars.slice(start, end).join("");
}

function join(list: CelList, by: string): string {
  return list
    .values()
    .map((item) => {
      if (typeof item === "string") return item;
      throw new CelError(`join: invalid input: ${typeNameOf(item)}`);
    })
    .join(by);
}

const quotes: Readonly<Record<string, string>> = {
  "\u0007": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  "\\": "\\\\",
  '"': '\\"',
};

function quote(value: string): string {
  return `"${[...value].map((char) => quotes[char] ?? char).join("")}"`;
}
