import { isJsonObject, jsonEqual } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { badRequest, type FieldError } from "../../kernel/status.ts";
import { checkBase64 } from "./base64.ts";
import { forbiddenField, invalidField } from "./native.ts";

/** What Secrets and ConfigMaps share: keyed data, of a bounded size, that may be frozen. */

/** Kubernetes' bound on all values of one Secret or ConfigMap together. */
const dataBytesMax = 1024 * 1024;

/** A key becomes a file name where the data is mounted, hence the care about dots. */
const keyCharacters = /^[-._a-zA-Z0-9]+$/;
const keyLengthMax = 253;
const keyMessage =
  "a valid config key must consist of alphanumeric characters, '-', '_' or '.' " +
  "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', " +
  "regex used for validation is '[-._a-zA-Z0-9]+')";

/** The entries of `data`, `binaryData` or `stringData`; none where it is not a map of texts. */
export function dataEntries(object: KubeObject, field: string): [string, string][] {
  const map = object[field];
  if (!isJsonObject(map)) return [];
  const entries = Object.entries(map);
  return entries.filter((entry): entry is [string, string] => typeof entry[1] === "string");
}

/** To Go a null among texts is the empty text: `key:` with nothing behind it is an empty value. */
export function emptyForNull(map: unknown): unknown {
  if (!isJsonObject(map)) return map;
  return Object.fromEntries(Object.entries(map).map(([key, value]) => [key, value ?? ""]));
}

/**
 * Brings every value to canonical base64. A value that is none is refused as kube-apiserver does
 * it: as a body that cannot be read, not as an invalid field.
 */
export function canonicalBase64(kind: string, map: unknown): unknown {
  const filled = emptyForNull(map);
  if (!isJsonObject(filled)) return filled;
  const entries = Object.entries(filled);
  return Object.fromEntries(entries.map(([key, value]) => [key, canonicalValue(kind, value)]));
}

function canonicalValue(kind: string, value: unknown): unknown {
  if (typeof value !== "string") return value;
  const checked = checkBase64(value);
  if (checked.ok) return checked.text;
  throw badRequest(
    `${kind} in version "v1" cannot be handled as a ${kind}: ` +
      `illegal base64 data at input byte ${checked.offset}`,
  );
}

export function keyErrors(object: KubeObject, field: string): FieldError[] {
  return dataEntries(object, field).flatMap(([key]) => {
    return keyProblems(key).map((detail) => invalidField(`${field}[${key}]`, key, detail));
  });
}

function keyProblems(key: string): string[] {
  const problems: string[] = [];
  if (Buffer.byteLength(key) > keyLengthMax) {
    problems.push(`must be no more than ${keyLengthMax} characters`);
  }
  if (!keyCharacters.test(key)) problems.push(keyMessage);
  if (key === "." || key === "..") problems.push(`must not be '${key}'`);
  else if (key.startsWith("..")) problems.push("must not start with '..'");
  return problems;
}

export function sizeErrors(field: string, bytes: number): FieldError[] {
  if (bytes <= dataBytesMax) return [];
  const detail = `may not be more than ${dataBytesMax} bytes`;
  return [{ type: "FieldValueTooLong", field, detail }];
}

/** Once frozen, an object stays frozen and its data what it is; only deleting it ends that. */
export function immutableErrors(
  object: KubeObject,
  previous: KubeObject | undefined,
  fields: readonly string[],
): FieldError[] {
  if (previous?.immutable !== true) return [];
  const frozen = "field is immutable when `immutable` is set";
  const changed = fields.filter((field) => !jsonEqual(object[field] ?? {}, previous[field] ?? {}));
  const thawed = object.immutable === true ? [] : ["immutable"];
  return [...thawed, ...changed].map((field) => forbiddenField(field, frozen));
}
