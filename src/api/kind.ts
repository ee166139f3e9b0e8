import type { ObjectMeta } from "../kernel/object.ts";
import { group, version } from "./group.ts";
import type { apiVersion } from "./group.ts";
import type { Meanings } from "./reasons.ts";
import type { Column, Resource, ScaleSubresource } from "./resource.ts";
import type { AnyField, Field } from "./schema/field.ts";
import type { JsonSchema, ValidationRule } from "./schema/json-schema.ts";

/** An object of one of our kinds, with `spec` and `status` typed from the schema. */
export type TypedObject<Kind extends string, Spec, Status> = {
  apiVersion: typeof apiVersion;
  kind: Kind;
  metadata: ObjectMeta;
  spec: Spec;
  status?: Status;
};

/** A kind of ours: what serves, prints and documents it, and the types of its objects. */
export interface BerthKind<
  Kind extends string = string,
  Spec = unknown,
  WrittenSpec = unknown,
  Status = unknown,
> extends Resource {
  readonly kind: Kind;
  /** The words its conditions use, for its page. */
  readonly conditions: { readonly types: Meanings; readonly reasons: Meanings };
  /** Never set. It carries the types through the compiler. */
  readonly types?: {
    readonly read: TypedObject<Kind, Spec, Status>;
    readonly written: TypedObject<Kind, WrittenSpec, Status>;
  };
}

/** The type of a kind's objects as they are read: defaults are filled in. */
export type ObjectOf<K extends BerthKind> = NonNullable<K["types"]>["read"];

/** The type of a kind's objects as they may be sent: what has a default may be left out. */
export type WrittenObjectOf<K extends BerthKind> = NonNullable<K["types"]>["written"];

export interface KindDefinition<Kind extends string, Spec, WrittenSpec, Status> {
  readonly kind: Kind;
  readonly plural: string;
  readonly shortNames: readonly string[];
  readonly namespaced: boolean;
  readonly served: boolean;
  readonly description: string;
  readonly spec: Field<Spec, WrittenSpec>;
  /** Absent where the kind has no status, and then no status subresource either. */
  readonly status?: Field<Status>;
  readonly scale?: ScaleSubresource;
  /** Rules over the whole object; they also see `metadata.name`. */
  readonly rules?: readonly ValidationRule[];
  readonly columns: readonly Column[];
  readonly conditions?: { readonly types: Meanings; readonly reasons: Meanings };
}

/** Defines one of our kinds. Everything else about it is derived from what this returns. */
export function defineKind<const Kind extends string, Spec, WrittenSpec, Status = never>(
  definition: KindDefinition<Kind, Spec, WrittenSpec, Status>,
): BerthKind<Kind, Spec, WrittenSpec, Status> {
  const { kind, plural, shortNames, namespaced, served, description, columns } = definition;
  return {
    group,
    version,
    kind,
    plural,
    singular: kind.toLowerCase(),
    shortNames,
    categories: ["berth"],
    namespaced,
    description,
    schema: rootSchema(definition),
    subresources: {
      ...(definition.status ? { status: true } : {}),
      ...(definition.scale ? { scale: definition.scale } : {}),
    },
    columns,
    served,
    conditions: definition.conditions ?? { types: {}, reasons: {} },
  };
}

/** The AGE column, which every table ends with. */
export const ageColumn: Column = {
  name: "Age",
  type: "date",
  jsonPath: ".metadata.creationTimestamp",
  description: "How long ago the object was made.",
};

/** A column of text. */
export function column(name: string, jsonPath: string, description: string): Column {
  return { name, type: "string", jsonPath, description };
}

/** A column that shows a condition: its status, or with `part` its reason. */
export function conditionColumn(
  name: string,
  condition: string,
  part: "status" | "reason" = "status",
): Column {
  return {
    name,
    type: "string",
    jsonPath: `.status.conditions[?(@.type=="${condition}")].${part}`,
    description: `The ${part} of the condition ${condition}.`,
  };
}

function rootSchema(definition: {
  readonly description: string;
  readonly spec: AnyField;
  readonly status?: AnyField;
  readonly rules?: readonly ValidationRule[];
}): JsonSchema {
  const { description, spec, status, rules = [] } = definition;
  return {
    type: "object",
    description,
    required: ["spec"],
    properties: { spec: spec.schema, ...(status ? { status: status.schema } : {}) },
    ...(rules.length > 0 ? { "x-kubernetes-validations": [...rules] } : {}),
  };
}
