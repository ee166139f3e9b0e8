import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import { setMember } from "../../kernel/json-member.ts";

/** Why some metadata is not of the types that Kubernetes gives it, in the words of its decoder. */
export class MetadataTypeError extends Error {
  override readonly name = "MetadataTypeError";
}

type Check = (value: Json, place: string) => Json;

const fields: Readonly<Record<string, Check>> = {
  name: text,
  generateName: text,
  namespace: text,
  selfLink: text,
  uid: text,
  resourceVersion: text,
  generation: integer,
  creationTimestamp: time,
  deletionTimestamp: time,
  deletionGracePeriodSeconds: integer,
  labels: textMap,
  annotations: textMap,
  ownerReferences: list(ownerReference, "v1.OwnerReference"),
  finalizers: list(text, "string"),
  managedFields: list(managedFieldsEntry, "v1.ManagedFieldsEntry"),
};

const ownerReferenceFields: Readonly<Record<string, Check>> = {
  apiVersion: text,
  kind: text,
  name: text,
  uid: text,
  controller: flag,
  blockOwnerDeletion: flag,
};

/**
 * The metadata as Kubernetes would have read it: null means absent, and so does what is empty.
 * Unknown fields stay, for whoever complains about them. `place` is how the decoder calls where it
 * is. Throws a MetadataTypeError.
 */
export function decodeMetadata(value: Json | undefined, place: string): JsonObject {
  if (value === undefined || value === null) return {};
  if (isJsonObject(value)) return decodeFields(value, fields, place);
  throw new MetadataTypeError(
    `json: cannot unmarshal ${goType(value)} into Go value of type v1.ObjectMeta`,
  );
}

function decodeFields(
  value: JsonObject,
  checks: Readonly<Record<string, Check>>,
  place: string,
): JsonObject {
  const decoded: JsonObject = {};
  for (const [key, member] of Object.entries(value)) {
    const check = Object.hasOwn(checks, key) ? checks[key] : undefined;
    if (!check) setMember(decoded, key, member);
    else if (member !== null) keep(decoded, key, check(member, `${place}.${key}`));
  }
  return decoded;
}

/** Go leaves out what is empty when it writes the metadata again: it is the same as absent. */
function keep(decoded: JsonObject, key: string, value: Json): void {
  if (value === "") return;
  if (typeof value === "object" && value !== null && Object.keys(value).length === 0) return;
  decoded[key] = value;
}

function text(value: Json, place: string): string {
  if (typeof value !== "string") throw mismatch(value, place, "string");
  return value;
}

function integer(value: Json, place: string): number {
  if (!Number.isSafeInteger(value)) throw mismatch(value, place, "int64");
  return Number(value);
}

function flag(value: Json, place: string): boolean {
  if (typeof value !== "boolean") throw mismatch(value, place, "bool");
  return value;
}

const rfc3339 = /^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)$/;

function time(value: Json, place: string): string {
  const written = text(value, place);
  if (rfc3339.test(written) && !Number.isNaN(Date.parse(written))) return written;
  throw new MetadataTypeError(
    `parsing time ${JSON.stringify(written)} as "2006-01-02T15:04:05Z07:00": ` +
      `cannot parse ${JSON.stringify(written)} as "2006"`,
  );
}

function textMap(value: Json, place: string): JsonObject {
  if (!isJsonObject(value)) throw mismatch(value, place, "map[string]string");
  const decoded: JsonObject = {};
  for (const [key, member] of Object.entries(value)) {
    setMember(decoded, key, member === null ? "" : text(member, place));
  }
  return decoded;
}

function list(check: Check, type: string): Check {
  return (value, place) => {
    if (!Array.isArray(value)) throw mismatch(value, place, `[]${type}`);
    return value.map((item) => check(item, place));
  };
}

function ownerReference(value: Json, place: string): JsonObject {
  if (!isJsonObject(value)) throw mismatch(value, place, "v1.OwnerReference");
  return decodeFields(value, ownerReferenceFields, "OwnerReference");
}

function managedFieldsEntry(value: Json, place: string): JsonObject {
  if (!isJsonObject(value)) throw mismatch(value, place, "v1.ManagedFieldsEntry");
  return value;
}

function mismatch(value: Json, place: string, wanted: string): MetadataTypeError {
  return new MetadataTypeError(
    `json: cannot unmarshal ${goType(value)} into Go struct field ${place} of type ${wanted}`,
  );
}

function goType(value: Json): string | undefined {
  return Array.isArray(value) ? "array" : goTypes[typeof value];
}

const goTypes: Record<string, string> = {
  string: "string",
  number: "number",
  boolean: "bool",
  object: "object",
};
