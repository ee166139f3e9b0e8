import type { JsonSchema } from "../../api/schema/json-schema.ts";

const text: JsonSchema = { type: "string" };
const texts: JsonSchema = { type: "object", additionalProperties: text };
const whole: JsonSchema = { type: "integer" };
const flag: JsonSchema = { type: "boolean" };

/**
 * The fields of metadata that Kubernetes 1.32 knows. It serves only to find and drop the others:
 * the values are checked where objects are written, not here.
 */
export const objectMetaSchema: JsonSchema = {
  type: "object",
  properties: {
    name: text,
    generateName: text,
    namespace: text,
    selfLink: text,
    uid: text,
    resourceVersion: text,
    generation: whole,
    creationTimestamp: text,
    deletionTimestamp: text,
    deletionGracePeriodSeconds: whole,
    labels: texts,
    annotations: texts,
    ownerReferences: {
      type: "array",
      items: {
        type: "object",
        properties: {
          apiVersion: text,
          kind: text,
          name: text,
          uid: text,
          controller: flag,
          blockOwnerDeletion: flag,
        },
      },
    },
    finalizers: { type: "array", items: text },
    managedFields: {
      type: "array",
      items: {
        type: "object",
        properties: {
          manager: text,
          operation: text,
          apiVersion: text,
          time: text,
          fieldsType: text,
          fieldsV1: { type: "object", "x-kubernetes-preserve-unknown-fields": true },
          subresource: text,
        },
      },
    },
  },
};
