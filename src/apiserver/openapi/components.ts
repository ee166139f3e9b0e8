import type { Resource } from "../../api/resource.ts";
import { assert } from "../../kernel/assert.ts";
import { apiVersionField, kindField, metaNames, metaSchemas } from "./meta-schemas.ts";
import { scaleSchemas } from "./scale-schemas.ts";
import { describedReference, reference } from "./schema.ts";
import type { GroupVersionKind, OpenApiSchema } from "./schema.ts";

/** The schemas that the document of one group and version has. */
export function documentSchemas(resources: readonly Resource[]): Record<string, OpenApiSchema> {
  const scaled = resources.some((resource) => resource.subresources.scale !== undefined);
  return {
    ...Object.fromEntries(resources.flatMap(resourceSchemas)),
    ...(scaled ? scaleSchemas : {}),
    ...metaSchemas,
  };
}

/**
 * The name of a kind's schema. Clients that show types cut it at the last dot; those that generate
 * code expect Kubernetes' own names for Kubernetes' kinds, and the group reversed for others.
 */
export function componentName({ group, version, kind }: GroupVersionKind): string {
  if (group === "") return `io.k8s.api.core.${version}.${kind}`;
  const labels = group.split(".");
  if (group.endsWith(".k8s.io")) return `io.k8s.api.${labels[0] ?? ""}.${version}.${kind}`;
  return [...labels.reverse(), version, kind].join(".");
}

export function listComponentName(kind: GroupVersionKind): string {
  return `${componentName(kind)}List`;
}

export function groupVersionKind({ group, version, kind }: GroupVersionKind): GroupVersionKind {
  return { group, version, kind };
}

function resourceSchemas(resource: Resource): [string, OpenApiSchema][] {
  return [
    [componentName(resource), objectSchema(resource)],
    [listComponentName(resource), listSchema(resource)],
  ];
}

function objectSchema(resource: Resource): OpenApiSchema {
  const { properties, ...rest } = withIntOrString(withMergeKeys(resource));
  return {
    ...rest,
    description: resource.description,
    type: "object",
    properties: {
      apiVersion: apiVersionField,
      kind: kindField,
      metadata: describedReference("Name, labels and life of the object.", metaNames.objectMeta),
      ...properties,
    },
    "x-kubernetes-group-version-kind": [groupVersionKind(resource)],
  };
}

function listSchema(resource: Resource): OpenApiSchema {
  const kind = `${resource.kind}List`;
  return {
    description: `A list of objects of the kind ${resource.kind}.`,
    type: "object",
    required: ["items"],
    properties: {
      apiVersion: apiVersionField,
      kind: kindField,
      metadata: describedReference("Revision and paging of the list.", metaNames.listMeta),
      items: {
        description: "The objects.",
        type: "array",
        items: reference(componentName(resource)),
      },
    },
    "x-kubernetes-group-version-kind": [groupVersionKind({ ...resource, kind })],
  };
}

/** Strategic merge is told here which lists it joins, and by which key. */
function withMergeKeys(resource: Resource): OpenApiSchema {
  const schema: OpenApiSchema = structuredClone(resource.schema);
  for (const [path, key] of Object.entries(resource.native?.mergeKeys ?? {})) {
    // Those of the metadata are the same in every kind, and stand in ObjectMeta.
    if (path.startsWith("metadata.")) continue;
    const list = schemaAt(schema, path);
    assert(list !== undefined, `the schema of ${resource.kind} has the merged list ${path}`);
    list["x-kubernetes-patch-strategy"] = "merge";
    if (key !== "") list["x-kubernetes-patch-merge-key"] = key;
  }
  return schema;
}

function schemaAt(schema: OpenApiSchema, path: string): OpenApiSchema | undefined {
  let found: OpenApiSchema | undefined = schema;
  for (const field of path.split(".")) found = (found?.items ?? found)?.properties?.[field];
  return found;
}

/**
 * A value that is a number or a text has no type of its own, and `kubectl explain` would call it an
 * Object. A reference gives it a name.
 */
function withIntOrString(schema: OpenApiSchema): OpenApiSchema {
  const { properties, items, additionalProperties } = schema;
  const named = schema["x-kubernetes-int-or-string"] === true;
  return {
    ...schema,
    ...(named ? { allOf: [reference(metaNames.intOrString), ...(schema.allOf ?? [])] } : {}),
    ...(properties ? { properties: mapValues(properties, withIntOrString) } : {}),
    ...(items ? { items: withIntOrString(items) } : {}),
    ...(typeof additionalProperties === "object"
      ? { additionalProperties: withIntOrString(additionalProperties) }
      : {}),
  };
}

function mapValues<T>(record: Record<string, T>, change: (value: T) => T): Record<string, T> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
}
