import { humanAge } from "../../kernel/human-duration.ts";
import { isJsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { FieldError } from "../../kernel/status.ts";
import type { Column } from "../resource.ts";

/** What the built-in kinds share. The objects they see are decoded, but not yet checked. */

/** Lists of the metadata that strategic merge joins instead of replacing, in every kind. */
export const metadataMergeKeys: Readonly<Record<string, string>> = {
  "metadata.ownerReferences": "uid",
  "metadata.finalizers": "",
};

export const ageColumn: Column = {
  name: "Age",
  type: "string",
  jsonPath: ".metadata.creationTimestamp",
  description: "How long ago the object was created.",
};

export function age(object: KubeObject, nowMs: number): string {
  return humanAge(object.metadata.creationTimestamp, nowMs);
}

/**
 * Drops every field that is null, at any depth: to a built-in kind null says "not given", and Go
 * clients send it for each time that is not set. The metadata is the server's own business.
 */
export function withoutNulls(object: KubeObject): KubeObject {
  const { apiVersion, kind, metadata, ...fields } = object;
  return { apiVersion, kind, metadata, ...prunedOfNulls(fields) };
}

function prunedOfNulls(fields: Record<string, unknown>): Record<string, unknown> {
  const kept = Object.entries(fields).filter(([, value]) => value !== null);
  return Object.fromEntries(kept.map(([key, value]) => [key, valueWithoutNulls(value)]));
}

function valueWithoutNulls(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(valueWithoutNulls);
  return isJsonObject(value) ? prunedOfNulls(value) : value;
}

/** A field of an object whose shape is not checked yet: empty where it is not a struct. */
export function structAt(object: Record<string, unknown>, field: string): Record<string, unknown> {
  const value = object[field];
  return isJsonObject(value) ? value : {};
}

export function textAt(object: Record<string, unknown>, field: string): string {
  const value = object[field];
  return typeof value === "string" ? value : "";
}

export function numberAt(object: Record<string, unknown>, field: string): number | undefined {
  const value = object[field];
  return typeof value === "number" ? value : undefined;
}

export function invalidField(field: string, value: unknown, detail: string): FieldError {
  return { type: "FieldValueInvalid", field, value: JSON.stringify(value), detail };
}

export function requiredField(field: string): FieldError {
  return { type: "FieldValueRequired", field, detail: "" };
}

export function forbiddenField(field: string, detail: string): FieldError {
  return { type: "FieldValueForbidden", field, detail };
}
