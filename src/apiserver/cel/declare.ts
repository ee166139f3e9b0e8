import type { JsonSchema } from "../../api/schema/json-schema.ts";
import { isJsonObject } from "../../kernel/json.ts";
import { CelError } from "./errors.ts";
import { escapeProperty } from "./escape.ts";
import { JsonMap, ObjectMap } from "./maps.ts";
import { decodeBase64, parseDate, parseTimestamp, parseLooseDuration } from "./time.ts";
import * as types from "./types.ts";
import type { CelType, ObjectField } from "./types.ts";
import { CelList, Duration, Preserved, Timestamp, type Adapt, type ListKind } from "./values.ts";

/** A schema as CEL sees it: the type for the checker, and how JSON of it becomes a value. */
export interface Declared {
  readonly type: CelType;
  readonly adapt: Adapt;
}

/**
 * Declares a schema. Undefined for what rules must not see: data without a type. At the root of a
 * resource, apiVersion, kind, metadata.name and metadata.generateName are always there.
 */
export function declareSchema(schema: JsonSchema, isResource: boolean): Declared | undefined {
  const declared = declarePlain(isResource ? withResourceFields(schema) : schema);
  if (declared === undefined) return undefined;
  const { adapt } = declared;
  const isNullable = schema.nullable === true;
  return {
    type: declared.type,
    adapt: (raw) => {
      if (raw !== null) return adapt(raw);
      if (isNullable) return null;
      throw new CelError("invalid data, got null for schema with nullable=false");
    },
  };
}

function withResourceFields(schema: JsonSchema): JsonSchema {
  const text: JsonSchema = { type: "string" };
  const metadata: JsonSchema = { type: "object", properties: { name: text, generateName: text } };
  return {
    ...schema,
    properties: { ...schema.properties, apiVersion: text, kind: text, metadata },
  };
}

function declareChild(schema: JsonSchema): Declared | undefined {
  return declareSchema(schema, schema["x-kubernetes-embedded-resource"] === true);
}

function declarePlain(schema: JsonSchema): Declared | undefined {
  if (schema["x-kubernetes-int-or-string"]) return { type: types.dyn, adapt: adaptIntOrString };
  switch (schema.type) {
    case "string":
      return declareText(schema.format);
    case "integer":
      return { type: types.int, adapt: adaptInteger };
    case "number":
      return { type: types.double, adapt: expect("float", "number") };
    case "boolean":
      return { type: types.bool, adapt: expect("bool", "boolean") };
    case "array":
      return declareList(schema);
    case "object":
      return declareObject(schema);
    default:
      return undefined;
  }
}

function declareText(format: string | undefined): Declared {
  switch (format) {
    case "byte":
      return { type: types.bytes, adapt: (raw) => decodeBase64(String(raw)) };
    case "duration":
      return {
        type: types.duration,
        adapt: (raw) => new Duration(parseLooseDuration(String(raw))),
      };
    case "date":
      return { type: types.timestamp, adapt: (raw) => new Timestamp(parseDate(String(raw))) };
    case "date-time":
      return { type: types.timestamp, adapt: adaptTimestamp };
    default:
      return { type: types.string, adapt: expect("string", "string") };
  }
}

function adaptTimestamp(raw: unknown): Timestamp {
  const nanos = parseTimestamp(String(raw));
  if (nanos !== undefined) return new Timestamp(nanos);
  throw new CelError(`Invalid date-time formatted string ${String(raw)}`);
}

/** Schema errors stop rules from running, so these are bugs or old data, not daily cases. */
function expect(goType: string, jsType: "string" | "number" | "boolean"): Adapt {
  return (raw) => {
    // cast: the type was compared in the same line.
    if (typeof raw === jsType) return raw as string | number | boolean;
    throw new CelError(`invalid data, expected ${goType}, got ${typeof raw}`);
  };
}

function adaptInteger(raw: unknown): bigint {
  if (typeof raw === "number" && Number.isInteger(raw)) return BigInt(raw);
  throw new CelError(`invalid data, expected int, got ${typeof raw}`);
}

function adaptIntOrString(raw: unknown): bigint | string {
  if (typeof raw === "string") return raw;
  if (typeof raw === "number" && Number.isInteger(raw)) return BigInt(raw);
  throw new CelError("invalid data, expected XIntOrString value to be either a string or integer");
}

function declareList(schema: JsonSchema): Declared | undefined {
  const items = schema.items === undefined ? undefined : declareChild(schema.items);
  if (items === undefined) return undefined;
  const kind = listKindOf(schema);
  return {
    type: types.listOf(items.type),
    adapt: (raw) => {
      if (Array.isArray(raw)) return CelList.fromJson(raw, items.adapt, kind);
      throw new CelError("invalid data, expected an array for the provided schema with type=array");
    },
  };
}

function listKindOf(schema: JsonSchema): ListKind {
  const type = schema["x-kubernetes-list-type"];
  if (type !== "map") return type === "set" ? "set" : "atomic";
  const keys = schema["x-kubernetes-list-map-keys"] ?? [];
  return { keys: keys.map((key) => escapeProperty(key) ?? key) };
}

function declareObject(schema: JsonSchema): Declared | undefined {
  const { additionalProperties } = schema;
  if (typeof additionalProperties === "object") {
    const values = declareChild(additionalProperties);
    if (values === undefined) return undefined;
    const type = types.mapOf(types.string, values.type);
    return { type, adapt: (raw) => new JsonMap(asObject(raw), values.adapt) };
  }
  const fields = new Map<string, ObjectField & { adapt: Adapt }>();
  for (const [property, child] of Object.entries(schema.properties ?? {})) {
    const name = escapeProperty(property);
    const declared = declareChild(child) ?? preservedOf(child);
    if (name !== undefined && declared !== undefined) fields.set(name, { property, ...declared });
  }
  const visible = new Map([...fields].filter(([, field]) => field.type.kind !== "param"));
  return {
    type: { kind: "object", fields: visible },
    adapt: (raw) => new ObjectMap(asObject(raw), fields),
  };
}

/** Preserved data has no type and so no expression can reach it; equality of its parent can. */
function preservedOf(schema: JsonSchema): Declared | undefined {
  if (!schema["x-kubernetes-preserve-unknown-fields"]) return undefined;
  return { type: { kind: "param", name: "preserved" }, adapt: (raw) => new Preserved(raw) };
}

function asObject(raw: unknown): Readonly<Record<string, unknown>> {
  if (isJsonObject(raw)) return raw;
  throw new CelError("invalid data, expected a map for the provided schema with type=object");
}
