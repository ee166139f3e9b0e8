import { isJsonObject, type Json, type JsonObject } from "./json.ts";
import { copyJson, getMember, setMember } from "./json-member.ts";
import { badRequest } from "./status.ts";
import { mergeLists, orderByDirective, type ListRules } from "./strategic-merge-list.ts";
import { cleaned, directive, isDirective, listOf } from "./strategic-merge-directives.ts";

/**
 * Which lists are merged instead of replaced: the path of the list ("metadata.ownerReferences")
 * to the member that names an element ("uid"), or to "" for a set of scalars. Elements of lists
 * add nothing to a path.
 */
export type MergeKeys = Readonly<Record<string, string>>;

/**
 * Applies a strategic merge patch, as kube-apiserver does for its built-in kinds: maps are merged,
 * lists are merged by key where the table says so and replaced elsewhere, null removes, and the
 * `$` directives are obeyed. The result shares nothing with target or patch.
 *
 * Throws an ApiError 400 where a directive makes no sense.
 */
export function applyStrategicMergePatch(
  target: JsonObject,
  patch: JsonObject,
  mergeKeys: MergeKeys,
): JsonObject {
  return mergeObjects(target, patch, { mergeKeys, path: "" });
}

interface Place {
  readonly mergeKeys: MergeKeys;
  /** Where we are: "" for the object itself, then "metadata", "metadata.finalizers". */
  readonly path: string;
}

function mergeObjects(target: JsonObject, patch: JsonObject, place: Place): JsonObject {
  const marker = getMember(patch, directive.patch);
  if (marker === "replace") return cleanedObject(patch);
  if (marker === "delete") return {};
  if (marker !== undefined && marker !== "merge") {
    throw badRequest(`unknown patch type: ${JSON.stringify(marker)}`);
  }
  const result = retained(target, patch);
  for (const key of Object.keys(patch)) {
    if (!isDirective(key)) mergeMember(result, patch, { key, place: child(place, key) });
  }
  // Deletions come last: they win over additions of the same value.
  for (const key of Object.keys(patch)) applyListDirective(result, patch, { key, place, target });
  return result;
}

function mergeMember(
  result: JsonObject,
  patch: JsonObject,
  { key, place }: { key: string; place: Place },
): void {
  const value = getMember(patch, key) ?? null;
  const merged = value === null ? undefined : mergeValues(getMember(result, key), value, place);
  if (merged === undefined) delete result[key];
  else setMember(result, key, merged);
}

function mergeValues(current: Json | undefined, value: Json, place: Place): Json | undefined {
  if (isJsonObject(current) && isJsonObject(value)) return mergeObjects(current, value, place);
  const rules = listRules(place);
  if (rules === undefined || !Array.isArray(value)) return cleaned(value);
  return mergeLists(Array.isArray(current) ? current : [], value, rules);
}

function listRules(place: Place): ListRules | undefined {
  if (!Object.hasOwn(place.mergeKeys, place.path)) return undefined;
  const mergeKey = place.mergeKeys[place.path] ?? "";
  return { mergeKey, path: place.path, merge: (left, right) => mergeObjects(left, right, place) };
}

/** A copy of the target with only the members that `$retainKeys` names, if the patch has it. */
function retained(target: JsonObject, patch: JsonObject): JsonObject {
  const result: JsonObject = {};
  const keep = retainedKeys(patch);
  for (const key of Object.keys(target)) {
    if (keep === undefined || keep.has(key)) setMember(result, key, copyJson(target[key] ?? null));
  }
  return result;
}

function retainedKeys(patch: JsonObject): Set<string> | undefined {
  const listed = getMember(patch, directive.retainKeys);
  if (listed === undefined) return undefined;
  const malformed = badRequest("invalid patch format of retainKeys");
  if (!Array.isArray(listed)) throw malformed;
  const keep = new Set(listed.filter((key) => typeof key === "string"));
  for (const key of Object.keys(patch)) {
    if (!isDirective(key) && patch[key] !== null && !keep.has(key)) throw malformed;
  }
  return keep;
}

function applyListDirective(
  result: JsonObject,
  patch: JsonObject,
  { key, place, target }: { key: string; place: Place; target: JsonObject },
): void {
  const [name, field] = splitDirective(key);
  if (field === undefined) return;
  const listed = listOf(patch[key], name);
  const current = getMember(result, field);
  if (!Array.isArray(current)) return;
  if (name === directive.deleteFromPrimitiveList) {
    setMember(result, field, withoutScalars(current, listed));
    return;
  }
  const rules = listRules(child(place, field));
  if (rules === undefined) return;
  const live = getMember(target, field);
  const patched = getMember(patch, field);
  const lists = {
    merged: current,
    live: Array.isArray(live) ? live : [],
    patched: Array.isArray(patched) ? patched : [],
  };
  setMember(result, field, orderByDirective(lists, listed, rules));
}

function splitDirective(key: string): [string, string | undefined] {
  for (const name of [directive.deleteFromPrimitiveList, directive.setElementOrder]) {
    if (key === name || key.startsWith(`${name}/`)) {
      // Without a field it says nothing, and its content must still be refused.
      if (key.length <= name.length + 1) listOf(null, name);
      return [name, key.slice(name.length + 1)];
    }
  }
  return [key, undefined];
}

function withoutScalars(current: Json[], unwanted: Json[]): Json[] {
  const gone = new Set(unwanted);
  return current.filter((item) => !gone.has(item));
}

function cleanedObject(patch: JsonObject): JsonObject {
  const value = cleaned(patch);
  return isJsonObject(value) ? value : {};
}

function child(place: Place, key: string): Place {
  return { ...place, path: place.path === "" ? key : `${place.path}.${key}` };
}
