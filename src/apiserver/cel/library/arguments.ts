import { CelError, noSuchOverload } from "../errors.ts";
import {
  CelList,
  Duration,
  isMap,
  Opaque,
  Optional,
  Timestamp,
  Uint,
  type CelMap,
  type OpaqueContent,
  type Value,
} from "../values.ts";

/** Readers of arguments. A signature promised the type; dynamic data may still break it. */

export function text(value: Value | undefined): string {
  if (typeof value === "string") return value;
  throw noSuchOverload();
}

export function integer(value: Value | undefined): bigint {
  if (typeof value === "bigint") return value;
  throw noSuchOverload();
}

/** An int that serves as an index or count, small enough to be a number. */
export function index(value: Value | undefined): number {
  return Number(integer(value));
}

export function float(value: Value | undefined): number {
  if (typeof value === "number") return value;
  throw noSuchOverload();
}

export function unsigned(value: Value | undefined): bigint {
  if (value instanceof Uint) return value.value;
  throw noSuchOverload();
}

export function list(value: Value | undefined): CelList {
  if (value instanceof CelList) return value;
  throw noSuchOverload();
}

export function map(value: Value | undefined): CelMap {
  if (isMap(value)) return value;
  throw noSuchOverload();
}

export function bytes(value: Value | undefined): Uint8Array {
  if (value instanceof Uint8Array) return value;
  throw noSuchOverload();
}

export function optional(value: Value | undefined): Optional {
  if (value instanceof Optional) return value;
  throw noSuchOverload();
}

export function timestampNanos(value: Value | undefined): bigint {
  if (value instanceof Timestamp) return value.nanos;
  throw noSuchOverload();
}

export function durationNanos(value: Value | undefined): bigint {
  if (value instanceof Duration) return value.nanos;
  throw noSuchOverload();
}

/** The content of one of Kubernetes' own types. */
export function content<T extends OpaqueContent["type"]>(
  value: Value | undefined,
  type: T,
): Extract<OpaqueContent, { type: T }> {
  if (value instanceof Opaque && isContent(value.content, type)) return value.content;
  throw noSuchOverload();
}

function isContent<T extends OpaqueContent["type"]>(
  found: OpaqueContent,
  type: T,
): found is Extract<OpaqueContent, { type: T }> {
  return found.type === type;
}

export function checkInt(value: bigint): bigint {
  if (value >= -(2n ** 63n) && value < 2n ** 63n) return value;
  throw new CelError("integer overflow");
}

export function checkUint(value: bigint): Uint {
  if (value >= 0n && value < 2n ** 64n) return new Uint(value);
  throw new CelError("unsigned integer overflow");
}

/** The number of code points: CEL does not know UTF-16. */
export function codePoints(value: string): number {
  if (!/[\ud800-\udbff]/.test(value)) return value.length;
  let count = 0;
  for (const _ of value) count++;
  return count;
}

/** The size by which calls are charged: characters, bytes, items; 1 for everything else. */
export function sizeOf(value: Value | undefined): number {
  if (typeof value === "string") return value.length;
  if (value instanceof Uint8Array) return value.length;
  if (value instanceof CelList) return value.size;
  if (value instanceof Opaque) return opaqueSize(value.content);
  return isMap(value) ? value.size : 1;
}

function opaqueSize(held: OpaqueContent): number {
  if (held.type === "net.IP") return held.ip.bits / 8;
  return held.type === "net.CIDR" ? Math.ceil(held.prefix.length / 8) : 1;
}

/** The cost of walking over a text once, or as often as said. */
export function traversal(times = 1): (args: readonly Value[]) => number {
  return ([subject]) => Math.ceil(sizeOf(subject) * times * 0.1);
}
