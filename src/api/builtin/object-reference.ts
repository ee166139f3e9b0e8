import type { JsonSchema } from "../schema/json-schema.ts";
import { struct, text } from "./schema-parts.ts";

/** A reference to any object, as Events and ServiceAccounts hold one. */
export function objectReference(description: string): JsonSchema {
  const properties = {
    apiVersion: text("The API version of the object."),
    kind: text("The kind of the object."),
    namespace: text("The namespace of the object."),
    name: text("The name of the object."),
    uid: text("The uid of the object."),
    resourceVersion: text("The revision of the object that is meant, if a certain one is."),
    fieldPath: text("The part of the object that is meant, if not the whole."),
  };
  return struct(description, properties, { "x-kubernetes-map-type": "atomic" });
}
