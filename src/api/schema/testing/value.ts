import { isJsonObject } from "../../../kernel/json.ts";
import type { Json } from "../../../kernel/json.ts";
import type { JsonSchema } from "../json-schema.ts";

/**
 * What is wrong with a value under a schema, as far as a default can be wrong: its type, words and
 * bounds, fields that are unknown, missing, or would be filled in. It is not the admission of the
 * server, which this room cannot know.
 */
export function problemsOfValue(schema: JsonSchema, value: Json): string[] {
  if (schema.enum && !schema.enum.includes(value)) return [`${shown(value)} is not in the enum`];
  switch (schema.type) {
    case "object":
      return isJsonObject(value) ? problemsOfObject(schema, value) : [wrong(value, "object")];
    case "array":
      return Array.isArray(value) ? problemsOfList(schema, value) : [wrong(value, "list")];
    case "string":
      return typeof value === "string" ? problemsOfText(schema, value) : [wrong(value, "string")];
    case "integer":
      return Number.isInteger(value) ? problemsOfNumber(schema, value) : [wrong(value, "integer")];
    case "boolean":
      return typeof value === "boolean" ? [] : [wrong(value, "boolean")];
    default:
      return ["has no type to check it by"];
  }
}

function problemsOfObject(schema: JsonSchema, value: Record<string, Json>): string[] {
  const { properties = {}, required = [] } = schema;
  const fields = Object.entries(value).flatMap(([name, field]) => {
    const property = properties[name];
    return property ? problemsOfValue(property, field) : [`has the unknown field ${name}`];
  });
  const missing = required.filter((name) => !(name in value)).map((name) => `lacks ${name}`);
  const unfilled = Object.entries(properties)
    .filter(([name, property]) => property.default !== undefined && !(name in value))
    .map(([name]) => `lacks the default of ${name}, which its rules would not see`);
  return [...fields, ...missing, ...unfilled];
}

function problemsOfList(schema: JsonSchema, value: Json[]): string[] {
  const { items = {}, minItems = 0, maxItems = Infinity } = schema;
  if (value.length < minItems || value.length > maxItems) return ["has the wrong length"];
  return value.flatMap((item) => problemsOfValue(items, item));
}

function problemsOfText(schema: JsonSchema, value: string): string[] {
  const { minLength = 0, maxLength = Infinity, pattern = "" } = schema;
  if (value.length < minLength || value.length > maxLength) return ["has the wrong length"];
  return new RegExp(pattern, "u").test(value) ? [] : [`${shown(value)} does not match`];
}

function problemsOfNumber(schema: JsonSchema, value: Json): string[] {
  const { minimum = -Infinity, maximum = Infinity } = schema;
  const inside = Number(value) >= minimum && Number(value) <= maximum;
  return inside ? [] : [`${shown(value)} is out of bounds`];
}

function wrong(value: Json, expected: string): string {
  return `${shown(value)} is no ${expected}`;
}

function shown(value: Json): string {
  return JSON.stringify(value);
}
