import { apiVersionField, kindField, metaNames } from "./meta-schemas.ts";
import { describedReference, type OpenApiSchema } from "./schema.ts";

const scalePackage = "io.k8s.api.autoscaling.v1";

export const scaleName = `${scalePackage}.Scale`;
const specName = `${scalePackage}.ScaleSpec`;
const statusName = `${scalePackage}.ScaleStatus`;

/** What `kubectl scale` and autoscalers read and write, whatever the kind of the object. */
export const scaleSchemas: Readonly<Record<string, OpenApiSchema>> = {
  [scaleName]: {
    description: "How many there are to be, and how many there are.",
    type: "object",
    properties: {
      apiVersion: apiVersionField,
      kind: kindField,
      metadata: describedReference("That of the scaled object.", metaNames.objectMeta),
      spec: describedReference("How many there are to be.", specName),
      status: describedReference("How many there are.", statusName),
    },
    "x-kubernetes-group-version-kind": [{ group: "autoscaling", version: "v1", kind: "Scale" }],
  },
  [specName]: {
    description: "How many there are to be.",
    type: "object",
    properties: {
      replicas: { description: "The wanted number.", type: "integer", format: "int32" },
    },
  },
  [statusName]: {
    description: "How many there are.",
    type: "object",
    required: ["replicas"],
    properties: {
      replicas: { description: "The observed number.", type: "integer", format: "int32" },
      selector: { description: "A label selector that finds them.", type: "string" },
    },
  },
};
