import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import { copyJson, setMember } from "../../kernel/json-member.ts";
import { createMergePatch } from "../../kernel/merge-patch.ts";

/** Where kubectl remembers what was applied last. Shared with it, so that both can be mixed. */
export const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";

/**
 * The manifest with itself written into the annotation, byte for byte as kubectl writes it: keys
 * sorted, `annotations` there even if empty, and Go's way of escaping.
 */
export function withLastApplied(manifest: JsonObject): JsonObject {
  const metadata = isJsonObject(manifest["metadata"]) ? manifest["metadata"] : {};
  const given = isJsonObject(metadata["annotations"]) ? metadata["annotations"] : {};
  const { [lastApplied]: _, ...annotations } = given;
  const plain = { ...manifest, metadata: { ...metadata, annotations } };
  const text = `${goJson(plain)}\n`;
  return {
    ...plain,
    metadata: { ...metadata, annotations: { ...annotations, [lastApplied]: text } },
  };
}

/** What was applied last, as far as the annotation tells. */
export function lastAppliedOf(current: JsonObject): JsonObject {
  const metadata = isJsonObject(current["metadata"]) ? current["metadata"] : {};
  const annotations = isJsonObject(metadata["annotations"]) ? metadata["annotations"] : {};
  const text = annotations[lastApplied];
  if (typeof text !== "string") return {};
  try {
    const parsed: unknown = JSON.parse(text);
    return isJsonObject(parsed) ? parsed : {};
  } catch {
    // Somebody wrote into it by hand: then nothing is known to have been applied, or to be removed.
    return {};
  }
}

export interface ThreeWay {
  /** What was applied last. */
  readonly original: JsonObject;
  /** What is applied now, with its annotation. */
  readonly modified: JsonObject;
  /** What the server has. */
  readonly current: JsonObject;
}

/**
 * The merge patch that sets what is declared, removes what was declared and no longer is, and
 * leaves alone what others set. Undefined where there is nothing to do.
 */
export function threeWayPatch({ original, modified, current }: ThreeWay): JsonObject | undefined {
  const changes = filterNulls(createMergePatch(current, modified) ?? {}, "without");
  const removals = filterNulls(createMergePatch(original, modified) ?? {}, "only");
  const patch = mergePatches(changes, removals);
  return Object.keys(patch).length === 0 ? undefined : patch;
}

/** Nulls are removals. Lists are values as a whole, and so is a map that was declared empty. */
function filterNulls(patch: JsonObject, nulls: "without" | "only"): JsonObject {
  const filtered: JsonObject = {};
  for (const [key, value] of Object.entries(patch)) {
    const kept = isBranch(value) ? filterBranch(value, nulls) : filterLeaf(value, nulls);
    if (kept !== undefined) setMember(filtered, key, kept);
  }
  return filtered;
}

function isBranch(value: Json): value is JsonObject {
  return isJsonObject(value) && Object.keys(value).length > 0;
}

function filterBranch(value: JsonObject, nulls: "without" | "only"): Json | undefined {
  const inner = filterNulls(value, nulls);
  return Object.keys(inner).length === 0 ? undefined : inner;
}

function filterLeaf(value: Json, nulls: "without" | "only"): Json | undefined {
  return (value === null) === (nulls === "only") ? copyJson(value) : undefined;
}

/** Both patches in one. They never speak of the same leaf: what is declared is not removed. */
function mergePatches(left: JsonObject, right: JsonObject): JsonObject {
  const merged: JsonObject = {};
  for (const [key, value] of Object.entries(left)) setMember(merged, key, value);
  for (const [key, value] of Object.entries(right)) {
    const before = Object.hasOwn(left, key) ? left[key] : undefined;
    const both = isJsonObject(before) && isJsonObject(value) ? mergePatches(before, value) : value;
    setMember(merged, key, both);
  }
  return merged;
}

/** JSON as Go's encoder writes it: sorted keys, and what could end a script tag escaped. */
function goJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(goJson).join(",")}]`;
  if (!isJsonObject(value)) return goScalar(value);
  const keys = Object.keys(value).toSorted();
  const members = keys.map((key) => `${goScalar(key)}:${goJson(value[key] ?? null)}`);
  return `{${members.join(",")}}`;
}

function goScalar(value: Json): string {
  return JSON.stringify(value).replaceAll(/[<>&\u2028\u2029]/g, (letter) => {
    return `\\u${letter.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
