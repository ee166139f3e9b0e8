import { isJsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { assert } from "../../kernel/assert.ts";
import { makeImmutable } from "./immutable.ts";
import type { Decision, Entry } from "../../store/store.ts";

const decoder = new TextDecoder();
const encoder = new TextEncoder();

// Stored bytes never change, so their object is parsed once for all who look at it soon after, and
// not at all where it was just written: it then shares what did not change with the one before. The
// reference is weak: the store keeps every entry in memory, and must not keep them all twice.
const decoded = new WeakMap<Uint8Array, WeakRef<KubeObject>>();

/**
 * The object of a store entry. It is shared by everybody who asks and deeply frozen: copy it
 * (cloneJson) before changing it.
 */
export function decode(entry: Entry): KubeObject {
  const known = decoded.get(entry.value)?.deref();
  if (known !== undefined) return known;
  const object: unknown = JSON.parse(decoder.decode(entry.value));
  assert(isKubeObject(object), `the store holds an object under ${entry.id}`);
  makeImmutable(object);
  decoded.set(entry.value, new WeakRef(object));
  return object;
}

/**
 * The stored form of an object: its JSON with the revision as resourceVersion. The object is frozen
 * to its depths, since whoever reads it next may be given the same members.
 */
export function encode(object: KubeObject, revision: number): Uint8Array {
  const metadata = { ...object.metadata, resourceVersion: String(revision) };
  const stored = { ...object, metadata };
  const bytes = encoder.encode(JSON.stringify(stored));
  if (makeImmutable(stored)) decoded.set(bytes, new WeakRef(stored));
  return bytes;
}

/** Stores the object as it is. */
export function put(object: KubeObject): Decision {
  return { do: "put", encode: (revision) => encode(object, revision) };
}

/** Removes the object; this is its last state, for the watchers. */
export function remove(object: KubeObject): Decision {
  return { do: "delete", encode: (revision) => encode(object, revision) };
}

function isKubeObject(value: unknown): value is KubeObject {
  return (
    isJsonObject(value) && typeof value["kind"] === "string" && isJsonObject(value["metadata"])
  );
}
