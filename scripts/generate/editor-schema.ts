import { apiVersion } from "../../src/api/index.ts";
import type { BerthKind, JsonSchema } from "../../src/api/index.ts";
import type { JsonObject } from "../../src/kernel/json.ts";

const draft = "http://json-schema.org/draft-07/schema#";

/** The JSON Schema of one kind, by which an editor completes and checks a manifest. */
export function editorSchema(kind: BerthKind): JsonObject {
  const { properties = {}, required = [] } = kind.schema;
  return {
    $schema: draft,
    title: kind.kind,
    description: kind.description,
    type: "object",
    required: ["apiVersion", "kind", "metadata", ...required],
    properties: {
      apiVersion: { const: apiVersion },
      kind: { const: kind.kind },
      metadata: metadataSchema(kind.namespaced),
      ...translatedProperties(properties),
    },
    additionalProperties: false,
  };
}

/** One schema for all kinds: which one applies is decided by the manifest's own words. */
export function editorSchemaOfAll(kinds: readonly BerthKind[]): JsonObject {
  return {
    $schema: draft,
    title: "Berth",
    description: "Any object of Berth.",
    type: "object",
    required: ["apiVersion", "kind"],
    properties: {
      apiVersion: { const: apiVersion },
      kind: { enum: kinds.map((kind) => kind.kind) },
    },
    allOf: kinds.map((kind) => onlyFor(kind.kind, `${kind.singular}.json`)),
  };
}

/** A schema that counts for one kind only. */
function onlyFor(kind: string, file: string): JsonObject {
  return {
    if: { properties: { kind: { const: kind } }, required: ["kind"] },
    // oxlint-disable-next-line unicorn/no-thenable -- JSON Schema's own word; nobody awaits it.
    then: { $ref: file },
  };
}

function metadataSchema(namespaced: boolean): JsonObject {
  const texts = { type: "object", additionalProperties: { type: "string" } };
  return {
    description: "Name, labels and annotations of the object.",
    type: "object",
    properties: {
      name: { type: "string", maxLength: 253, description: "The object's name." },
      ...(namespaced
        ? { namespace: { type: "string", maxLength: 63, description: "Its namespace." } }
        : {}),
      labels: { ...texts, description: "Labels, to select it by." },
      annotations: { ...texts, description: "Annotations, such as berth.dev/paused." },
    },
  };
}

/** What editors understand of a structural schema. Rules are left to admission. */
function translated(schema: JsonSchema): JsonObject {
  const { properties, items, additionalProperties } = schema;
  const plain = Object.entries(schema).filter(isUnderstood);
  return {
    ...(schema["x-kubernetes-int-or-string"] ? { type: ["integer", "string"] } : {}),
    ...Object.fromEntries(plain),
    ...(properties
      ? { properties: translatedProperties(properties), additionalProperties: false }
      : {}),
    ...(items ? { items: translated(items) } : {}),
    ...(typeof additionalProperties === "object"
      ? { additionalProperties: translated(additionalProperties) }
      : {}),
  };
}

function translatedProperties(properties: Record<string, JsonSchema>): JsonObject {
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, translated(schema)]),
  );
}

/** What says the same to an editor as to Kubernetes. The rest is translated, or means nothing. */
function isUnderstood([key, value]: [string, unknown]): boolean {
  if (key.startsWith("x-") || translatedKeys.includes(key)) return false;
  return key !== "format" || value === "date-time";
}

const translatedKeys = ["properties", "items", "additionalProperties", "anyOf"];
