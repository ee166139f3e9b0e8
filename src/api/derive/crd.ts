import { stringify } from "yaml";
import { cloneJson } from "../../kernel/json.ts";
import type { JsonObject } from "../../kernel/json.ts";
import type { Column, Resource } from "../resource.ts";
import type { JsonSchema } from "../schema/json-schema.ts";

/** A CustomResourceDefinition, as far as ours use it. */
export interface CustomResourceDefinition {
  readonly apiVersion: "apiextensions.k8s.io/v1";
  readonly kind: "CustomResourceDefinition";
  readonly metadata: { readonly name: string };
  readonly spec: JsonObject;
}

/** CRDs as one YAML stream, as `berth crds` prints them and `kubectl apply -f -` reads them. */
export function crdsYaml(resources: readonly Resource[]): string {
  return resources
    .map((resource) => stringify(crdOf(resource), { aliasDuplicateObjects: false, lineWidth: 0 }))
    .join("---\n");
}

/**
 * The CRD of a kind, for a real Kubernetes. It is always served: which kinds a cluster gets is
 * decided by which CRDs are applied, and one that is not served could not be tried at all.
 */
export function crdOf(resource: Resource): CustomResourceDefinition {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `${resource.plural}.${resource.group}` },
    spec: toJson({
      group: resource.group,
      names: {
        kind: resource.kind,
        listKind: `${resource.kind}List`,
        plural: resource.plural,
        singular: resource.singular,
        ...(resource.shortNames.length > 0 ? { shortNames: resource.shortNames } : {}),
        ...(resource.categories.length > 0 ? { categories: resource.categories } : {}),
      },
      scope: resource.namespaced ? "Namespaced" : "Cluster",
      versions: [versionOf(resource)],
    }),
  };
}

function versionOf(resource: Resource): object {
  return {
    name: resource.version,
    served: true,
    storage: true,
    ...(resource.columns.length > 0
      ? { additionalPrinterColumns: resource.columns.map(printerColumn) }
      : {}),
    schema: { openAPIV3Schema: withMeta(resource.schema) },
    ...subresourcesOf(resource),
  };
}

function printerColumn(column: Column): object {
  const { name, type, jsonPath, description, format, priority } = column;
  return {
    name,
    type,
    jsonPath,
    description,
    ...(format === undefined ? {} : { format }),
    ...(priority === undefined ? {} : { priority }),
  };
}

/** The three fields of every object, which a kind's own schema leaves out. */
function withMeta(schema: JsonSchema): JsonSchema {
  return {
    ...schema,
    properties: {
      apiVersion: {
        type: "string",
        description: "The version of the schema that this object is written in.",
      },
      kind: { type: "string", description: "The kind of this object." },
      metadata: { type: "object" },
      ...schema.properties,
    },
  };
}

function subresourcesOf(resource: Resource): object {
  const { status, scale } = resource.subresources;
  if (!status && !scale) return {};
  return { subresources: { ...(status ? { status: {} } : {}), ...(scale ? { scale } : {}) } };
}

/** A CRD is plain data that shares nothing with the kind it was made from. */
function toJson(value: object): JsonObject {
  // cast: schemas, names and columns are JSON by their types; interfaces cannot say so.
  return cloneJson(value) as JsonObject;
}
