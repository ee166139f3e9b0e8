import type { Json, JsonObject } from "../../kernel/json.ts";
import { isJsonObject } from "../../kernel/json.ts";
import type { Structural } from "./structural.ts";

/**
 * Fills in defaults, in place, wherever the parent exists. A null that its schema does not allow
 * counts as missing: it becomes the default, or goes where there is none.
 */
export function fillDefaults(value: unknown, structural: Structural): void {
  if (isList(value)) fillList(value, structural);
  else if (isJsonObject(value)) fillObject(value, structural);
}

function isList(value: unknown): value is Json[] {
  return Array.isArray(value);
}

function fillObject(object: JsonObject, structural: Structural): void {
  for (const [key, fallback] of structural.defaults) {
    if (!Object.hasOwn(object, key)) object[key] = copyOf(fallback);
  }
  for (const key in object) {
    if (typeof object[key] !== "object") continue;
    // Metadata is not the schema's to change: creationTimestamp may well be null.
    if (structural.isResource && key === "metadata") continue;
    const child = structural.properties.get(key) ?? structural.additional;
    if (child !== undefined) fillField(object, key, child);
  }
}

function fillField(object: JsonObject, key: string, child: Structural): void {
  if (object[key] === null && !child.schema.nullable) {
    if (child.defaultValue === undefined) delete object[key];
    else object[key] = copyOf(child.defaultValue);
  }
  fillDefaults(object[key], child);
}

function fillList(list: Json[], { items }: Structural): void {
  if (items === undefined) return;
  for (let index = 0; index < list.length; index++) {
    // A null item without a default stays, so that indices keep their meaning.
    if (list[index] === null && !items.schema.nullable && items.defaultValue !== undefined) {
      list[index] = copyOf(items.defaultValue);
    }
    fillDefaults(list[index], items);
  }
}

// Several times faster than structuredClone, and defaults are copied on every write.
function copyOf(value: Json): Json {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map(copyOf);
  const copy: JsonObject = {};
  for (const key in value) copy[key] = copyOf(value[key] ?? null);
  return copy;
}
