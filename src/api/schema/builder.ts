import { isJsonObject } from "../../kernel/json.ts";
import type { Json, JsonObject } from "../../kernel/json.ts";
import type { AnyField, Field, PresentKey, ReadShape, Shape, WrittenShape } from "./field.ts";
import type { JsonSchema, ValidationRule } from "./json-schema.ts";

/**
 * The words in which the kinds are written. Every value takes its description first, and everything
 * that can grow takes its bound: the compiler insists, so that no field is undocumented and CEL's
 * estimated cost stays finite.
 */

interface Ruled {
  readonly rules?: readonly ValidationRule[];
}

export interface StringOptions extends Ruled {
  readonly maxLength: number;
  readonly minLength?: number;
  /** RE2 and ECMAScript both have to read it: no look-around, no back references. */
  readonly pattern?: string;
  readonly format?: "date-time";
}

export function string(description: string, options: StringOptions): Field<string> {
  const { rules, ...bounds } = options;
  return required({ type: "string", description, ...bounds, ...validations(rules) });
}

export interface IntegerOptions extends Ruled {
  readonly minimum: number;
  readonly maximum: number;
}

const int32Max = 2_147_483_647;

export function integer(description: string, options: IntegerOptions): Field<number> {
  const { rules, ...bounds } = options;
  const format = options.maximum <= int32Max ? "int32" : "int64";
  return required({ type: "integer", description, format, ...bounds, ...validations(rules) });
}

export function boolean(description: string, options: Ruled = {}): Field<boolean> {
  return required({ type: "boolean", description, ...validations(options.rules) });
}

/** One of a few words. */
export function enumeration<const T extends string>(
  description: string,
  values: readonly T[],
  options: Ruled = {},
): Field<T> {
  return required({
    type: "string",
    description,
    enum: [...values],
    ...validations(options.rules),
  });
}

/** Fields that are there together. All are required but `optional` and `withDefault` ones. */
export function object<S extends Shape>(
  description: string,
  shape: S,
  options: Ruled & { readonly minProperties?: number } = {},
): Field<ReadShape<S>, WrittenShape<S>> {
  const { rules, ...bounds } = options;
  const needed = Object.keys(shape).filter((name) => shape[name]?.presence === "required");
  return required({
    type: "object",
    description,
    ...(needed.length > 0 ? { required: needed } : {}),
    ...bounds,
    properties: Object.fromEntries(
      Object.entries(shape).map(([name, field]) => [name, field.schema]),
    ),
    ...validations(rules),
  });
}

export interface ListOptions extends Ruled {
  readonly maxItems: number;
  readonly minItems?: number;
}

/** An ordered list that is replaced as a whole. */
export function array<R, W>(
  description: string,
  item: Field<R, W>,
  options: ListOptions,
): Field<R[], W[]> {
  return required({ ...listSchema("atomic", item, options), description });
}

/** Scalars without order and without doubles; several writers may each add theirs. */
export function set<R extends string | number>(
  description: string,
  item: Field<R>,
  options: ListOptions,
): Field<R[]> {
  return required({ ...listSchema("set", item, options), description });
}

/** Objects keyed by one of their fields, never by position. */
export function listMap<R extends object, W>(
  description: string,
  item: Field<R, W>,
  options: ListOptions & { readonly key: PresentKey<R> },
): Field<R[], W[]> {
  const { key, ...bounds } = options;
  return required({
    ...listSchema("map", item, bounds),
    description,
    "x-kubernetes-list-map-keys": [key],
  });
}

export interface MapOptions extends Ruled {
  readonly maxProperties: number;
  readonly minProperties?: number;
}

/** Values by free key. Each key can be owned by another writer. */
export function map<R, W>(
  description: string,
  value: Field<R, W>,
  options: MapOptions,
): Field<Record<string, R>, Record<string, W>> {
  const { rules, ...bounds } = options;
  return required({
    type: "object",
    description,
    ...bounds,
    additionalProperties: value.schema,
    ...validations(rules),
  });
}

/** May be left out, and is then simply not there. */
export function optional<R, W>(field: Field<R, W>): Field<R, W, "optional"> {
  return { schema: field.schema, presence: "optional" };
}

/**
 * May be left out; admission then writes the default, so that every reader sees it. The defaults of
 * the fields below are part of it: kube-apiserver runs the rules over a default as it is written.
 */
export function withDefault<R, W>(field: Field<R, W>, value: W & Json): Field<R, W, "defaulted"> {
  const filled = fillDefaults(field.schema, value);
  return { schema: { ...field.schema, default: filled }, presence: "defaulted" };
}

/** The same field with one rule more. */
export function ruled<F extends AnyField>(field: F, ...rules: readonly ValidationRule[]): F {
  const all = [...(field.schema["x-kubernetes-validations"] ?? []), ...rules];
  return { ...field, schema: { ...field.schema, "x-kubernetes-validations": all } };
}

/** The same field under a description that fits its place. */
export function described<F extends AnyField>(field: F, description: string): F {
  return { ...field, schema: { ...field.schema, description } };
}

function fillDefaults(schema: JsonSchema, value: Json): Json {
  if (!isJsonObject(value)) return value;
  const filled: JsonObject = { ...value };
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const given = filled[name] ?? property.default;
    if (given !== undefined) filled[name] = fillDefaults(property, given);
  }
  return filled;
}

function listSchema(
  type: "atomic" | "set" | "map",
  item: AnyField,
  options: ListOptions,
): JsonSchema {
  const { rules, ...bounds } = options;
  return {
    type: "array",
    ...bounds,
    items: item.schema,
    "x-kubernetes-list-type": type,
    ...validations(rules),
  };
}

function required<R, W>(schema: JsonSchema): Field<R, W> {
  return { schema, presence: "required" };
}

function validations(rules: readonly ValidationRule[] | undefined): JsonSchema {
  return rules && rules.length > 0 ? { "x-kubernetes-validations": [...rules] } : {};
}
