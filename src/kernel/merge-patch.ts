import { isJsonObject, jsonEqual, type Json, type JsonObject } from "./json.ts";
import { copyJson, getMember, setMember } from "./json-member.ts";

/**
 * Applies a JSON merge patch (RFC 7386). The result shares nothing with target or patch, so that
 * the caller may change it in place.
 *
 * One thing goes beyond the RFC, as kube-apiserver does it: a null inside an object inside a list
 * of the patch also removes its member, where the RFC would store the null.
 */
export function applyMergePatch(target: Json | undefined, patch: Json): Json {
  if (!isJsonObject(patch)) return withoutNulls(patch);
  const base = isJsonObject(target) ? target : {};
  const result: JsonObject = {};
  for (const key of Object.keys(base)) {
    if (!Object.hasOwn(patch, key)) setMember(result, key, copyJson(base[key] ?? null));
    else if (patch[key] !== null) setMember(result, key, mergedMember(base, patch, key));
  }
  for (const key of Object.keys(patch)) {
    if (Object.hasOwn(base, key) || patch[key] === null) continue;
    setMember(result, key, mergedMember(base, patch, key));
  }
  return result;
}

/** The patch that turns one value into the other; undefined where they are equal. */
export function createMergePatch(from: JsonObject, to: JsonObject): JsonObject | undefined {
  const patch: JsonObject = {};
  for (const key of Object.keys(from)) {
    if (!Object.hasOwn(to, key)) setMember(patch, key, null);
  }
  for (const key of Object.keys(to)) {
    const change = memberChange(getMember(from, key), to[key] ?? null);
    if (change !== undefined) setMember(patch, key, change);
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}

function mergedMember(base: JsonObject, patch: JsonObject, key: string): Json {
  return applyMergePatch(getMember(base, key), getMember(patch, key) ?? null);
}

function withoutNulls(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isJsonObject(value)) return value;
  return applyMergePatch({}, value);
}

function memberChange(from: Json | undefined, to: Json): Json | undefined {
  if (from === undefined) return copyJson(to);
  if (isJsonObject(from) && isJsonObject(to)) return createMergePatch(from, to);
  return jsonEqual(from, to) ? undefined : copyJson(to);
}
