import type { ScaleSubresource } from "../../api/resource.ts";
import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import { copyJson, getMember, setMember } from "../../kernel/json-member.ts";
import { memberNames } from "../../kernel/json-path.ts";
import type { KubeObject, ObjectMeta } from "../../kernel/object.ts";
import { badRequest, type ApiError, type FieldError } from "../../kernel/status.ts";
import { assert } from "../../kernel/assert.ts";
import type { ExpectedKind } from "./decode.ts";
import { internalError, invalidValue } from "./errors.ts";

/** autoscaling/v1 Scale: the number of replicas of any kind that has one, in the same form. */
export const scaleKind: ExpectedKind = {
  group: "autoscaling",
  version: "v1",
  kind: "Scale",
  isNative: true,
};

const int32Max = 2 ** 31 - 1;

/** The Scale of an object, as it is read. An object that says no number has none. */
export function readScale(object: KubeObject, paths: ScaleSubresource): KubeObject {
  if (integerAt(object, paths.specReplicasPath) !== undefined) return toScale(object, paths);
  throw internalError(`the spec replicas field "${paths.specReplicasPath}" does not exist`);
}

/** The Scale of an object, as it is changed: what says no number can be given one. */
export function toScale(object: KubeObject, paths: ScaleSubresource): KubeObject {
  const replicas = integerAt(object, paths.specReplicasPath);
  const selector = paths.labelSelectorPath && valueAt(object, paths.labelSelectorPath);
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: identityOf(object.metadata),
    spec: replicas === undefined ? {} : { replicas },
    status: {
      replicas: integerAt(object, paths.statusReplicasPath) ?? 0,
      ...(typeof selector === "string" ? { selector } : {}),
    },
  };
}

/**
 * The object with the number that a Scale carries. A Scale without a number means none, because Go
 * leaves zeros out; a revision on it is a precondition, as on the object itself.
 */
export function fromScale(
  scale: KubeObject,
  current: KubeObject,
  paths: ScaleSubresource,
): KubeObject {
  const spec = isJsonObject(scale["spec"]) ? scale["spec"] : {};
  const replicas = getMember(spec, "replicas") ?? 0;
  if (typeof replicas !== "number" || !Number.isInteger(replicas) || replicas > int32Max) {
    throw unreadableReplicas(replicas);
  }
  const { resourceVersion = current.metadata.resourceVersion } = scale.metadata;
  const object = withValueAt(current, paths.specReplicasPath, replicas);
  const metadata = {
    ...current.metadata,
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
  };
  return { ...object, metadata };
}

/** What is wrong with the numbers of an object that scales, whichever way they came. */
export function scaleErrors(object: KubeObject, paths: ScaleSubresource): FieldError[] {
  return [paths.specReplicasPath, paths.statusReplicasPath].flatMap((path) => {
    const value = valueAt(object, path) ?? 0;
    if (typeof value !== "number") return [];
    if (value < 0) return [invalidValue(path, String(value), "should be a non-negative integer")];
    if (value <= int32Max) return [];
    return [invalidValue(path, String(value), `should be less than or equal to ${int32Max}`)];
  });
}

/** Strict decoding of a Scale. The object that it changes is settled by its own schema. */
export function settleScale(
  scale: KubeObject,
  strictness: {
    readonly fieldValidation: string;
    readonly complaints: readonly string[];
    readonly refuse: (why: string) => ApiError;
  },
): string[] {
  const complaints = [...strictness.complaints, ...unknownFields(scale)];
  if (complaints.length > 0 && strictness.fieldValidation === "Strict") {
    throw strictness.refuse(`strict decoding error: ${complaints.join(", ")}`);
  }
  return strictness.fieldValidation === "Warn" ? complaints : [];
}

function unknownFields(scale: KubeObject): string[] {
  const spec = isJsonObject(scale["spec"]) ? scale["spec"] : {};
  const known = ["apiVersion", "kind", "metadata", "spec", "status"];
  return [
    ...Object.keys(scale).filter((key) => !known.includes(key)),
    ...Object.keys(spec).flatMap((key) => (key === "replicas" ? [] : [`spec.${key}`])),
  ].map((path) => `unknown field ${JSON.stringify(path)}`);
}

function identityOf(metadata: ObjectMeta): ObjectMeta {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = metadata;
  return {
    ...(name === undefined ? {} : { name }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
  };
}

function integerAt(object: KubeObject, path: string): number | undefined {
  const value = valueAt(object, path);
  if (value === undefined || value === null) return undefined;
  if (typeof value === "number" && Number.isInteger(value)) return value;
  throw internalError(`${path} accessor error: ${JSON.stringify(value)} is no integer`);
}

function valueAt(object: KubeObject, path: string): Json | undefined {
  assert(isJsonObject(object), "an object is JSON");
  let value: Json | undefined = object;
  for (const name of namesOf(path)) {
    value = isJsonObject(value) ? getMember(value, name) : undefined;
  }
  return value;
}

function withValueAt(object: KubeObject, path: string, value: Json): KubeObject {
  const [first = "", ...rest] = namesOf(path);
  const root = object[first];
  return { ...object, [first]: withMember(isJsonObject(root) ? root : {}, rest, value) };
}

function withMember(object: JsonObject, names: readonly string[], value: Json): Json {
  const [name, ...rest] = names;
  if (name === undefined) return value;
  const copy: JsonObject = { ...object };
  const member = getMember(object, name) ?? null;
  setMember(copy, name, withMember(isJsonObject(member) ? member : {}, rest, copyJson(value)));
  return copy;
}

function namesOf(path: string): string[] {
  const names = memberNames(path);
  assert(names && names.length > 0, `the scale path ${path} names members only`);
  return names;
}

function unreadableReplicas(value: Json): ApiError {
  const found = typeof value === "number" ? `number ${value}` : typeof value;
  return badRequest(
    'Scale in version "v1" cannot be handled as a Scale: json: cannot unmarshal ' +
      `${found} into Go struct field ScaleSpec.spec.replicas of type int32`,
  );
}
