import type { Json } from "../../kernel/json.ts";
import { cloneJson } from "../../kernel/json.ts";
import type { JsonSchema } from "../../api/schema/json-schema.ts";
import { objectMetaSchema } from "./object-meta.ts";
import { pruneValue } from "./prune.ts";
import type { Structural } from "./structural.ts";

/** Compiles the schema of a whole object: apiVersion, kind and metadata are implied. */
export function compileRoot(schema: JsonSchema): Structural {
  return compile(schema, true);
}

function compile(schema: JsonSchema, isResource: boolean): Structural {
  const { additionalProperties, items } = schema;
  const properties = new Map<string, Structural>();
  if (isResource) addResourceFields(properties);
  for (const [key, property] of Object.entries(schema.properties ?? {})) {
    if (isResource && key === "metadata") continue;
    properties.set(key, compileChild(property));
  }
  const defaults: [string, Json][] = [];
  for (const [key, child] of properties) {
    if (child.defaultValue !== undefined) defaults.push([key, child.defaultValue]);
  }
  const structural = {
    schema,
    properties,
    additional: isSchema(additionalProperties) ? compileChild(additionalProperties) : undefined,
    allowsAnyKey: additionalProperties === true,
    items: items === undefined ? undefined : compileChild(items),
    isResource,
    defaults,
  };
  return { ...structural, defaultValue: pruneDefault({ ...structural, defaultValue: undefined }) };
}

function compileChild(schema: JsonSchema): Structural {
  return compile(schema, schema["x-kubernetes-embedded-resource"] === true);
}

function isSchema(additional: JsonSchema | boolean | undefined): additional is JsonSchema {
  return typeof additional === "object";
}

// Compiled once, on first use: its own schema has no embedded resources.
let objectMeta: Structural | undefined;

function addResourceFields(properties: Map<string, Structural>): void {
  objectMeta ??= compile(objectMetaSchema, false);
  const text = compile({ type: "string" }, false);
  properties.set("apiVersion", text).set("kind", text).set("metadata", objectMeta);
}

function pruneDefault(structural: Structural): Json | undefined {
  const value = structural.schema.default;
  // In Kubernetes a default of null is no default.
  if (value === undefined || value === null) return undefined;
  const pruned = cloneJson(value);
  pruneValue(pruned, structural, []);
  return pruned;
}
