import type { JsonSchema, ValidationRule } from "../json-schema.ts";
import { problemsOfValue } from "./value.ts";

/**
 * Everything that is wrong with a schema: what kube-apiserver asks of a structural one, and what we
 * ask of ourselves beyond it, which is words for every field and a bound for all that can grow.
 * Each problem starts with the path of the field.
 */
export function structuralProblems(schema: JsonSchema, path = ""): string[] {
  const say = (problem: string): string => `${path || "the object"}: ${problem}`;
  const own = checks.flatMap((check) => check(schema));
  return [
    ...own.map(say),
    ...children(schema).flatMap(([name, child]) => below(path, name, child)),
  ];
}

type Check = (schema: JsonSchema) => string[];

const formats = ["int32", "int64", "date-time"];

const checks: readonly Check[] = [
  function hasType(schema) {
    const free = schema["x-kubernetes-int-or-string"] === true;
    if (free) return when(schema.type !== undefined, "int-or-string has no type of its own");
    return when(schema.type === undefined, "has no type");
  },
  function isDescribed(schema) {
    const text = schema.description ?? "";
    if (text.trim() === "") return ["has no description"];
    return when(!/[.!?]$/.test(text), "its description is not a sentence");
  },
  function isBounded(schema) {
    switch (schema.type) {
      case "string":
        return when(!schema.maxLength && !schema.enum, "a string needs maxLength or enum");
      case "array":
        return when(schema.maxItems === undefined, "a list needs maxItems");
      case "integer":
        return when(
          schema.minimum === undefined || schema.maximum === undefined,
          "a number needs minimum and maximum",
        );
      case "object":
        return when(
          schema.additionalProperties !== undefined && schema.maxProperties === undefined,
          "a map needs maxProperties",
        );
      default:
        return [];
    }
  },
  function hasKnownFormat(schema) {
    if (schema.type === "integer" && !schema.format) return ["an integer needs int32 or int64"];
    const { format } = schema;
    return when(format !== undefined && !formats.includes(format), `unknown format ${format}`);
  },
  function isPruning(schema) {
    return [
      ...when(
        schema.properties !== undefined && schema.additionalProperties !== undefined,
        "properties and additionalProperties exclude each other",
      ),
      ...when(schema.additionalProperties === true, "a map needs a schema for its values"),
      ...when(schema["x-kubernetes-preserve-unknown-fields"] === true, "keeps unknown fields"),
      ...when(schema.uniqueItems === true, "uniqueItems is forbidden"),
      ...when(schema.type === "array" && schema.items === undefined, "a list needs items"),
    ];
  },
  function hasPlainJunctors(schema) {
    const { allOf = [], anyOf = [], oneOf = [], not } = schema;
    if (schema["x-kubernetes-int-or-string"] === true) {
      const shown = JSON.stringify(anyOf);
      const expected = '[{"type":"integer"},{"type":"string"}]';
      return when(shown !== expected, "int-or-string needs anyOf integer, string");
    }
    const junctors = [...allOf, ...anyOf, ...oneOf, ...(not ? [not] : [])];
    return junctors.flatMap((junctor) => {
      return when(
        Object.keys(junctor).some((key) => structuralWords.test(key)),
        "allOf, anyOf, oneOf and not may not say what the structure is",
      );
    });
  },
  function hasRequired(schema) {
    return (schema.required ?? []).flatMap((name) => {
      const field = schema.properties?.[name];
      if (field === undefined) return [`requires ${name}, which it does not have`];
      return when(field.default !== undefined, `requires ${name}, which has a default`);
    });
  },
  hasListType,
  function hasValidDefault(schema) {
    if (schema.default === undefined) return [];
    return problemsOfValue(schema, schema.default).map((problem) => `its default ${problem}`);
  },
  function hasReadablePattern(schema) {
    if (schema.pattern === undefined) return [];
    const { pattern } = schema;
    return [
      ...when(/\(\?[=!<]|\\[1-9]/.test(pattern), "its pattern is not one that RE2 reads"),
      ...when(!pattern.startsWith("^"), "its pattern does not begin at the beginning"),
      ...when(!compiles(pattern), "its pattern is no regular expression"),
    ];
  },
  function hasRules(schema) {
    const rules = schema["x-kubernetes-validations"] ?? [];
    return rules.flatMap((rule) => problemsOfRule(schema, rule));
  },
];

const structuralWords = /^(type|description|default|additionalProperties|nullable|x-.*)$/;

function hasListType(schema: JsonSchema): string[] {
  if (schema.type !== "array") return [];
  const item = schema.items ?? {};
  switch (schema["x-kubernetes-list-type"]) {
    case "atomic":
      return [];
    case "set":
      return when(item.type === "object" || item.type === "array", "a set needs scalars");
    case "map":
      return mapKeyProblems(schema["x-kubernetes-list-map-keys"] ?? [], item);
    default:
      return ["a list needs a list type"];
  }
}

function mapKeyProblems(keys: readonly string[], item: JsonSchema): string[] {
  if (keys.length === 0) return ["a list-map needs keys"];
  return keys.flatMap((key) => {
    const field = item.properties?.[key];
    if (field === undefined) return [`the key ${key} is no field of its items`];
    const present = (item.required ?? []).includes(key) || field.default !== undefined;
    return [
      ...when(!present, `the key ${key} is neither required nor defaulted`),
      ...when(field.type === "object" || field.type === "array", `the key ${key} is no scalar`),
    ];
  });
}

function problemsOfRule(schema: JsonSchema, rule: ValidationRule): string[] {
  const { message = "", fieldPath } = rule;
  return [
    ...when(message.trim() === "" || /[\r\n]/.test(message), "a rule needs a message of one line"),
    ...when(/[.!]$/.test(message), `the message "${message}" ends like a sentence`),
    ...when(
      fieldPath !== undefined && schemaAt(schema, fieldPath) === undefined,
      `the fieldPath ${fieldPath} leads nowhere`,
    ),
    // Kubernetes shows its own words for this reason, and ours are lost.
    ...when(rule.reason === "FieldValueDuplicate", "FieldValueDuplicate hides the message"),
  ];
}

/** The schema at a path such as ".spec.disks". */
function schemaAt(schema: JsonSchema, path: string): JsonSchema | undefined {
  const names = path.split(".").filter((name) => name !== "");
  return names.reduce<JsonSchema | undefined>((at, name) => at?.properties?.[name], schema);
}

function children(schema: JsonSchema): [string, JsonSchema][] {
  const { properties = {}, items, additionalProperties } = schema;
  return [
    ...Object.entries(properties),
    ...(items ? [["[]", items] satisfies [string, JsonSchema]] : []),
    ...(typeof additionalProperties === "object"
      ? [["{}", additionalProperties] satisfies [string, JsonSchema]]
      : []),
  ];
}

function below(path: string, name: string, child: JsonSchema): string[] {
  const separator = path === "" || name === "[]" || name === "{}" ? "" : ".";
  return structuralProblems(child, `${path}${separator}${name}`);
}

function when(condition: boolean, problem: string): string[] {
  return condition ? [problem] : [];
}

function compiles(pattern: string): boolean {
  try {
    return new RegExp(pattern, "u") instanceof RegExp;
  } catch {
    return false;
  }
}
