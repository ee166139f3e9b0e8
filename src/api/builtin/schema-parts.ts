import type { Json } from "../../kernel/json.ts";
import type { JsonSchema } from "../schema/json-schema.ts";

/**
 * The few shapes of which the built-in kinds are made. They are written by hand, because they are
 * Kubernetes' own and not ours to design: nothing but their documentation is derived from them.
 */

export function text(description: string, options: JsonSchema = {}): JsonSchema {
  return { description, type: "string", ...options };
}

export function flag(description: string): JsonSchema {
  return { description, type: "boolean" };
}

export function int32(description: string): JsonSchema {
  return { description, type: "integer", format: "int32" };
}

/** A time. Go writes one that is not set as null, so null is read as absent. */
export function time(description: string): JsonSchema {
  return { description, type: "string", format: "date-time", nullable: true };
}

export function textMap(description: string, options: JsonSchema = {}): JsonSchema {
  return { description, type: "object", additionalProperties: { type: "string", ...options } };
}

export function struct(
  description: string,
  properties: Record<string, JsonSchema>,
  options: JsonSchema = {},
): JsonSchema {
  return { description, type: "object", properties, ...options };
}

export function textList(description: string): JsonSchema {
  const items: JsonSchema = { type: "string" };
  return { description, type: "array", items, "x-kubernetes-list-type": "atomic" };
}

/** A list whose entries are told apart by a key, for strategic merge and server-side apply. */
export function keyedList(description: string, key: string, items: JsonSchema): JsonSchema {
  return {
    description,
    type: "array",
    items,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": [key],
  };
}

export function withDefault(schema: JsonSchema, value: Json): JsonSchema {
  return { ...schema, default: value };
}
