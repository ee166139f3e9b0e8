import { parseGoDuration } from "../duration.ts";
import { equals } from "../equality.ts";
import { CelError } from "../errors.ts";
import { formatIp, formatPrefix } from "../ip.ts";
import type { Definition } from "../overload.ts";
import { checkTimestamp, floorDivide, formatTimestamp, parseTimestamp } from "../time.ts";
import { Duration, Timestamp, TypeValue, typeNameOf, Uint, type Value } from "../values.ts";
import * as arg from "./arguments.ts";

const same = (value?: Value): Value => value ?? null;

/** Sizes, conversions and the rest of CEL's own functions. */
export const standardLibrary: readonly Definition[] = [
  ["size(string): int", (v) => BigInt(arg.codePoints(arg.text(v)))],
  ["size(bytes): int", (v) => BigInt(arg.bytes(v).length)],
  ["size(list<A>): int", (v) => BigInt(arg.list(v).size)],
  ["size(map<A, B>): int", (v) => BigInt(arg.map(v).size)],
  ["string.size(): int", (v) => BigInt(arg.codePoints(arg.text(v)))],
  ["bytes.size(): int", (v) => BigInt(arg.bytes(v).length)],
  ["list<A>.size(): int", (v) => BigInt(arg.list(v).size)],
  ["map<A, B>.size(): int", (v) => BigInt(arg.map(v).size)],

  ["type(A): type", (v) => new TypeValue(typeNameOf(v ?? null))],
  ["dyn(A): dyn", same],

  ["bool(bool): bool", same],
  ["bool(string): bool", (v) => toBool(arg.text(v))],
  ["int(int): int", same],
  ["int(uint): int", (v) => arg.checkInt(arg.unsigned(v))],
  ["int(double): int", (v) => toInt(arg.float(v))],
  ["int(string): int", (v) => parseInteger(arg.text(v))],
  ["int(timestamp): int", (v) => floorDivide(arg.timestampNanos(v), 1_000_000_000n)],
  ["int(duration): int", (v) => arg.durationNanos(v)],
  ["uint(uint): uint", same],
  ["uint(int): uint", (v) => arg.checkUint(arg.integer(v))],
  ["uint(double): uint", (v) => arg.checkUint(BigInt(Math.trunc(finite(arg.float(v)))))],
  ["uint(string): uint", (v) => parseUnsigned(arg.text(v))],
  ["double(double): double", same],
  ["double(int): double", (v) => Number(arg.integer(v))],
  ["double(uint): double", (v) => Number(arg.unsigned(v))],
  ["double(string): double", (v) => parseDouble(arg.text(v))],
  ["bytes(bytes): bytes", same],
  ["bytes(string): bytes", (v) => new TextEncoder().encode(arg.text(v)), arg.traversal()],

  ["string(string): string", same],
  ["string(bool): string", (v) => (v === true ? "true" : "false")],
  ["string(int): string", (v) => String(arg.integer(v))],
  ["string(uint): string", (v) => String(arg.unsigned(v))],
  ["string(double): string", (v) => formatDouble(arg.float(v))],
  ["string(bytes): string", (v) => decodeText(arg.bytes(v)), arg.traversal()],
  ["string(timestamp): string", (v) => formatTimestamp(arg.timestampNanos(v))],
  ["string(duration): string", (v) => `${durationSeconds(arg.durationNanos(v))}s`],
  ["string(IP): string", (v) => formatIp(arg.content(v, "net.IP").ip)],
  ["string(CIDR): string", (v) => formatPrefix(arg.content(v, "net.CIDR").prefix)],

  ["timestamp(timestamp): timestamp", same],
  ["timestamp(string): timestamp", (v) => toTimestamp(arg.text(v))],
  ["timestamp(int): timestamp", (v) => fromSeconds(arg.integer(v))],
  ["duration(duration): duration", same],
  ["duration(string): duration", (v) => toDuration(arg.text(v))],
  ["duration(int): duration", (v) => new Duration(arg.integer(v))],

  [
    "string.contains(string): bool",
    (v, part) => arg.text(v).includes(arg.text(part)),
    containsCost,
  ],
  ["string.startsWith(string): bool", startsWith, arg.traversal()],
  ["string.endsWith(string): bool", endsWith, arg.traversal()],

  ["@in(A, list<A>): bool", contains, ([, items]) => arg.sizeOf(items)],
  ["@in(A, map<A, B>): bool", (key, map) => arg.map(map).find(key ?? null) !== undefined],
];

function startsWith(value?: Value, part?: Value): boolean {
  return arg.text(value).startsWith(arg.text(part));
}

function endsWith(value?: Value, part?: Value): boolean {
  return arg.text(value).endsWith(arg.text(part));
}

function contains(item?: Value, items?: Value): boolean {
  const list = arg.list(items);
  for (let i = 0; i < list.size; i++) if (equals(list.at(i), item ?? null)) return true;
  return false;
}

function containsCost([value, part]: readonly Value[]): number {
  return Math.ceil(arg.sizeOf(value) * 0.1) * Math.ceil(arg.sizeOf(part) * 0.1);
}

function toBool(text: string): boolean {
  if (["1", "t", "T", "true", "TRUE", "True"].includes(text)) return true;
  if (["0", "f", "F", "false", "FALSE", "False"].includes(text)) return false;
  throw conversionError("bool");
}

function finite(value: number): number {
  if (Number.isFinite(value) && value >= 0) return value;
  throw new CelError("unsigned integer overflow");
}

function toInt(value: number): bigint {
  // The bounds themselves are refused: a double cannot tell them from what lies beyond.
  if (value > -(2 ** 63) && value < 2 ** 63) return BigInt(Math.trunc(value));
  throw new CelError("integer overflow");
}

/** No number that fits has more characters; a longer text would only cost time. */
const numberCharsMax = 64;

function parseInteger(text: string): bigint {
  const isNumber = text.length <= numberCharsMax && /^[+-]?\d+$/.test(text);
  const value = isNumber ? BigInt(text.replace(/^\+/, "")) : undefined;
  if (value !== undefined && value >= -(2n ** 63n) && value < 2n ** 63n) return value;
  throw conversionError("int");
}

function parseUnsigned(text: string): Uint {
  const isNumber = text.length <= numberCharsMax && /^\d+$/.test(text);
  const value = isNumber ? BigInt(text) : undefined;
  if (value !== undefined && value < 2n ** 64n) return new Uint(value);
  throw conversionError("uint");
}

function conversionError(target: string): CelError {
  return new CelError(`type conversion error from 'string' to '${target}'`);
}

function parseDouble(text: string): number {
  if (/^[+-]?inf(inity)?$/i.test(text)) return text.startsWith("-") ? -Infinity : Infinity;
  if (/^nan$/i.test(text)) return Number.NaN;
  if (/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return Number(text);
  throw conversionError("double");
}

/** Go's shortest form: with an exponent of two digits below 1e-4 and from 1e6 on. */
export function formatDouble(value: number): string {
  if (value === Infinity) return "+Inf";
  if (value === -Infinity) return "-Inf";
  const magnitude = Math.abs(value);
  if (value === 0 || Number.isNaN(value) || (magnitude >= 1e-4 && magnitude < 1e6)) {
    return Object.is(value, -0) ? "-0" : String(value);
  }
  return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
}

function decodeText(value: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(value);
  } catch (cause) {
    throw new CelError(`invalid UTF-8 in bytes, cannot convert to string: ${String(cause)}`);
  }
}

function fromSeconds(seconds: bigint): Timestamp {
  return new Timestamp(checkTimestamp(seconds * 1_000_000_000n));
}

function toTimestamp(text: string): Timestamp {
  const nanos = parseTimestamp(text);
  if (nanos !== undefined) return new Timestamp(nanos);
  throw conversionError("google.protobuf.Timestamp");
}

function toDuration(text: string): Duration {
  const nanos = parseGoDuration(text);
  if (nanos !== undefined) return new Duration(nanos);
  throw conversionError("google.protobuf.Duration");
}

/** CEL writes durations in seconds, whatever their size. */
export function durationSeconds(nanos: bigint): string {
  const [whole, rest] = [nanos / 1_000_000_000n, nanos % 1_000_000_000n];
  const fraction = String(rest < 0n ? -rest : rest)
    .padStart(9, "0")
    .replace(/0+$/, "");
  const sign = whole === 0n && rest < 0n ? "-" : "";
  return fraction === "" ? `${sign}${whole}` : `${sign}${whole}.${fraction}`;
}
