import type { JsonSchema } from "../../api/schema/json-schema.ts";

/**
 * A schema as it stands in an OpenAPI document: a kind's own, and what only documents have. It is a
 * type of its own, because a kind's schema may not contain references: a CRD does not know them.
 */
export interface OpenApiSchema extends Omit<JsonSchema, SchemaHolders> {
  $ref?: string;
  properties?: Record<string, OpenApiSchema>;
  additionalProperties?: OpenApiSchema | boolean;
  items?: OpenApiSchema;
  allOf?: OpenApiSchema[];
  anyOf?: OpenApiSchema[];
  oneOf?: OpenApiSchema[];
  not?: OpenApiSchema;
  "x-kubernetes-patch-strategy"?: "merge";
  "x-kubernetes-patch-merge-key"?: string;
  "x-kubernetes-group-version-kind"?: GroupVersionKind[];
}

type SchemaHolders =
  | "properties"
  | "additionalProperties"
  | "items"
  | "allOf"
  | "anyOf"
  | "oneOf"
  | "not";

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

export function reference(component: string): OpenApiSchema {
  return { $ref: `#/components/schemas/${component}` };
}

/** A reference with words of its own. Siblings of $ref are ignored by readers, hence allOf. */
export function describedReference(description: string, component: string): OpenApiSchema {
  return { description, allOf: [reference(component)] };
}
