import { CelError } from "../errors.ts";
import type { Definition } from "../overload.ts";
import {
  CelList,
  Duration,
  isMap,
  none,
  Optional,
  Timestamp,
  Uint,
  type Value,
} from "../values.ts";
import * as arg from "./arguments.ts";

/** Optional values. `optMap`, `optFlatMap`, `.?` and `[?]` are the compiler's. */
export const optionalLibrary: readonly Definition[] = [
  ["optional.of(A): optional<A>", (v) => new Optional(v ?? null)],
  ["optional.ofNonZeroValue(A): optional<A>", (v) => (isZero(v ?? null) ? none : new Optional(v))],
  ["optional.none(): optional<A>", () => none],
  ["optional<A>.hasValue(): bool", (v) => arg.optional(v).value !== undefined],
  ["optional<A>.value(): A", (v) => valueOf(arg.optional(v))],
  ["optional<A>.or(optional<A>): optional<A>", (v, other) => orOther(arg.optional(v), other), free],
  ["optional<A>.orValue(A): A", (v, fallback) => orFallback(arg.optional(v), fallback), free],
];

function free(): number {
  return 0;
}

function orOther(first: Optional, other: Value | undefined): Optional {
  return first.value === undefined ? arg.optional(other) : first;
}

function orFallback({ value }: Optional, fallback: Value | undefined): Value {
  return value === undefined ? (fallback ?? null) : value;
}

function valueOf({ value }: Optional): Value {
  if (value === undefined) throw new CelError("optional.none() dereference");
  return value;
}

function isZero(value: Value): boolean {
  if (value === null || typeof value !== "object") return !value;
  if (value instanceof CelList || isMap(value)) return value.size === 0;
  if (value instanceof Uint8Array) return value.length === 0;
  if (value instanceof Optional) return value.value === undefined;
  return zeroOf(value) === 0n;
}

/** The number behind a value, so that zero is zero. */
function zeroOf(value: Value): bigint | undefined {
  if (value instanceof Uint) return value.value;
  if (value instanceof Duration) return value.nanos;
  return value instanceof Timestamp ? value.nanos - yearOneNanos : undefined;
}

/** Go's zero time is the first of January of the year one. */
const yearOneNanos = -62_135_596_800_000_000_000n;
