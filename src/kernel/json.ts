/** A JSON value as it arrives from the wire or the store, before anything parsed it into a type. */
export type Json = null | boolean | number | string | Json[] | JsonObject;
export type JsonObject = { [key: string]: Json };

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Equality of two JSON values. Key order does not matter, list order does. */
export function jsonEqual(left: unknown, right: unknown): boolean {
  if (left === right) return true;
  if (Array.isArray(left)) return Array.isArray(right) && listsEqual(left, right);
  if (!isJsonObject(left) || !isJsonObject(right)) return false;
  const keys = Object.keys(left);
  if (keys.length !== Object.keys(right).length) return false;
  return keys.every((key) => Object.hasOwn(right, key) && jsonEqual(left[key], right[key]));
}

function listsEqual(left: unknown[], right: unknown[]): boolean {
  return left.length === right.length && left.every((item, i) => jsonEqual(item, right[i]));
}

/** A deep copy that shares nothing with the original. */
export function cloneJson<T>(value: T): T {
  return structuredClone(value);
}
