import type { Json, JsonObject } from "./json.ts";

/**
 * Sets a member as plain data. A key that arrived from outside may be "__proto__"; assigning it
 * would change the object's prototype instead of its content.
 */
export function setMember(object: JsonObject, key: string, value: Json): void {
  if (key !== "__proto__") {
    object[key] = value;
    return;
  }
  Object.defineProperty(object, key, {
    value,
    writable: true,
    enumerable: true,
    configurable: true,
  });
}

/** The object's own member; never what it inherits ("constructor", "toString"). */
export function getMember(object: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** A deep copy of JSON, several times faster than structuredClone. */
export function copyJson(value: Json): Json {
  if (Array.isArray(value)) return value.map(copyJson);
  if (typeof value !== "object" || value === null) return value;
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) setMember(copy, key, copyJson(value[key] ?? null));
  return copy;
}
