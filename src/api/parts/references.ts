import { object, optional, string, withDefault } from "../schema/index.ts";
import type { Field, ValidationRule } from "../schema/index.ts";
import { namespaceName, objectName } from "./names.ts";

interface RefOptions {
  readonly rules?: readonly ValidationRule[];
}

/** A reference to an object by name: in the same namespace, or one that has no namespace. */
export function ref(
  kind: string,
  description: string,
  options: RefOptions = {},
): Field<{ name: string }> {
  return object(description, { name: objectName(`Name of the ${kind}.`) }, options);
}

/** A reference from an object without a namespace to one that has one. */
export function namespacedRef(
  kind: string,
  description: string,
): Field<{ namespace: string; name: string }> {
  return object(description, {
    namespace: namespaceName(`Namespace of the ${kind}.`),
    name: objectName(`Name of the ${kind}.`),
  });
}

const secretKeyPattern = "^[-._a-zA-Z0-9]+$";

/** One key of a Secret in the same namespace. */
export function secretKeyRef(
  description: string,
  defaultKey: string,
): Field<{ name: string; key: string }, { name: string; key?: string }> {
  return object(description, {
    name: objectName("Name of the Secret."),
    key: withDefault(
      string("Key in the Secret.", { minLength: 1, maxLength: 253, pattern: secretKeyPattern }),
      defaultKey,
    ),
  });
}

/** The object that something belongs to. The uid tells it from a later one of the same name. */
export function owningObject(
  description: string,
): Field<{ namespace: string; name: string; uid?: string }> {
  return object(description, {
    namespace: namespaceName("Namespace of the object."),
    name: objectName("Name of the object."),
    uid: optional(string("Its uid when this was written.", { maxLength: 64 })),
  });
}
