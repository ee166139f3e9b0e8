import { parseGoDuration } from "./duration.ts";
import { CelError } from "./errors.ts";

const nanosPerMs = 1_000_000n;
/** Years 1 to 9999, the range of google.protobuf.Timestamp. */
const earliestNanos = -62_135_596_800_000n * nanosPerMs;
const latestNanos = 253_402_300_799_999n * nanosPerMs + 999_999n;

const rfc3339 =
  /^(\d{4}-\d\d-\d\d)T((?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d)(?:\.(\d{1,9})\d*)?(Z|[+-]\d\d:\d\d)$/i;

/** RFC 3339 to nanoseconds since 1970. Undefined when it is no such time. */
export function parseTimestamp(text: string): bigint | undefined {
  const match = rfc3339.exec(text);
  if (match === null || !isDate(match[1] ?? "")) return undefined;
  const ms = Date.parse(`${match[1]}T${match[2]}${match[4]}`.toUpperCase());
  if (Number.isNaN(ms)) return undefined;
  const nanos = BigInt(ms) * nanosPerMs + BigInt((match[3] ?? "").padEnd(9, "0"));
  return isTimestampNanos(nanos) ? nanos : undefined;
}

/** A day that exists; JavaScript would take February 30 for March 1. */
export function isDate(text: string): boolean {
  const match = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text);
  if (match === null) return false;
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])];
  if (month < 1 || month > 12 || day < 1) return false;
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  const days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
  return day <= (days[month - 1] ?? 0);
}

const clock = /^T([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/i;

/** A time of RFC 3339 on a day that exists. */
export function isDateTime(text: string): boolean {
  return isDate(text.slice(0, 10)) && clock.test(text.slice(10));
}

export function parseDate(text: string): bigint {
  if (!isDate(text)) throw new CelError(`Invalid date formatted string ${text}`);
  return BigInt(Date.parse(text)) * nanosPerMs;
}

function isTimestampNanos(nanos: bigint): boolean {
  return nanos >= earliestNanos && nanos <= latestNanos;
}

export function checkTimestamp(nanos: bigint): bigint {
  if (isTimestampNanos(nanos)) return nanos;
  throw new CelError("timestamp overflow");
}

export function checkDuration(nanos: bigint): bigint {
  if (nanos >= -(2n ** 63n) && nanos < 2n ** 63n) return nanos;
  throw new CelError("duration overflow");
}

/** RFC 3339 in UTC, with as many decimals as there are. */
export function formatTimestamp(nanos: bigint): string {
  const ms = floorDivide(nanos, nanosPerMs);
  const second = floorDivide(nanos, 1_000_000_000n);
  const fraction = (nanos - second * 1_000_000_000n).toString().padStart(9, "0").replace(/0+$/, "");
  const text = new Date(Number(ms)).toISOString().slice(0, 19);
  return fraction === "" ? `${text}Z` : `${text}.${fraction}Z`;
}

export function floorDivide(value: bigint, divisor: bigint): bigint {
  const quotient = value / divisor;
  return value % divisor !== 0n && value < 0n !== divisor < 0n ? quotient - 1n : quotient;
}

const wordNanos: Readonly<Record<string, bigint>> = {
  ns: 1n,
  na: 1n,
  us: 1_000n,
  µs: 1_000n,
  mic: 1_000n,
  ms: 1_000_000n,
  mil: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
  d: 86_400_000_000_000n,
  w: 604_800_000_000_000n,
};

/** A Go duration, or words such as "3 days", which Kubernetes takes for format: duration. */
export function parseLooseDuration(text: string): bigint {
  const exact = parseGoDuration(text);
  if (exact !== undefined) return exact;
  let nanos = 0n;
  let isFound = false;
  for (const [, digits = "0", word = ""] of text.matchAll(/(\d+)\s*([A-Za-zµ]+)/g)) {
    const unit = wordNanos[unitOf(word.toLowerCase())];
    if (unit === undefined) continue;
    isFound = true;
    nanos += BigInt(digits) * unit;
  }
  if (isFound) return nanos;
  throw new CelError(`Invalid duration ${text}: unable to parse ${text} as duration`);
}

/** The key of `wordNanos`: "milliseconds" is "mil", "minutes" is "m". */
function unitOf(word: string): string {
  if (word.startsWith("mic")) return "mic";
  if (word.startsWith("mil")) return "mil";
  if (word.startsWith("na")) return "na";
  return Object.hasOwn(wordNanos, word) ? word : word.slice(0, 1);
}

/** URL-safe or standard base64, with padding. */
export function decodeBase64(text: string): Uint8Array {
  if (!/^[A-Za-z0-9+/_-]*={0,2}$/.test(text)) {
    throw new CelError(`Invalid byte formatted string ${text}: illegal base64 data`);
  }
  return Uint8Array.from(Buffer.from(text, "base64"));
}
