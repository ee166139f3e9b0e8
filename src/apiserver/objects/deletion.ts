import { formatTime } from "../../kernel/clock.ts";
import { isJsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { Decision } from "../../store/store.ts";
import { put, remove } from "./codec.ts";

/** The finalizer of an object that waits for its dependents to be deleted. */
export const foregroundFinalizer = "foregroundDeletion";
/** The finalizer of an object that waits for its dependents to be let go. */
export const orphanFinalizer = "orphan";

/** What of a DELETE's options decides how the object goes. */
export interface DeletionOptions {
  readonly propagationPolicy?: "Orphan" | "Background" | "Foreground";
  /** The older form of the same: true is Orphan. It wins over the policy. */
  readonly orphanDependents?: boolean;
}

/** What a DELETE does to an object. */
export type Deletion =
  /** It has finalizers: it is stored in this form, and goes when the last of them is removed. */
  | { readonly do: "mark"; readonly object: KubeObject }
  | { readonly do: "remove" }
  /** It is being deleted already, and this DELETE adds nothing. */
  | { readonly do: "keep" };

/**
 * Decides what a DELETE does, as kube-apiserver: the policy becomes one of the two finalizers of
 * the garbage collector (or takes them away), and what then has finalizers is only marked.
 */
export function deletionOf(object: KubeObject, options: DeletionOptions, nowMs: number): Deletion {
  const finalizers = finalizersUnder(options, object.metadata.finalizers ?? []);
  if (finalizers.length === 0 && namespaceFinalizers(object).length === 0) return { do: "remove" };
  const isMarked = object.metadata.deletionTimestamp !== undefined;
  if (isMarked && sameNames(finalizers, object.metadata.finalizers ?? [])) return { do: "keep" };
  return { do: "mark", object: marked(object, finalizers, nowMs) };
}

/** The same as a decision for the store. */
export function deletionDecision(
  object: KubeObject,
  options: DeletionOptions,
  nowMs: number,
): Decision {
  const deletion = deletionOf(object, options, nowMs);
  switch (deletion.do) {
    case "mark":
      return put(deletion.object);
    case "remove":
      return remove(object);
    case "keep":
      return { do: "keep" };
  }
}

/** What becomes of an object that was just changed: without finalizers a deleted one goes. */
export function afterUpdate(object: KubeObject): "store" | "remove" {
  if (object.metadata.deletionTimestamp === undefined) return "store";
  const waitsFor = [...(object.metadata.finalizers ?? []), ...namespaceFinalizers(object)];
  return waitsFor.length === 0 ? "remove" : "store";
}

/** The same as a decision for the store. */
export function updateDecision(object: KubeObject): Decision {
  return afterUpdate(object) === "remove" ? remove(object) : put(object);
}

/** A copy of the object without one of its finalizers. */
export function withoutFinalizer(object: KubeObject, finalizer: string): KubeObject {
  const { finalizers = [], ...metadata } = object.metadata;
  const left = finalizers.filter((name) => name !== finalizer);
  return { ...object, metadata: left.length > 0 ? { ...metadata, finalizers: left } : metadata };
}

/** A copy of the object without its references to these owners. */
export function withoutOwners(object: KubeObject, uids: ReadonlySet<string>): KubeObject {
  const { ownerReferences = [], ...metadata } = object.metadata;
  const left = ownerReferences.filter((owner) => !uids.has(owner.uid));
  const kept = left.length > 0 ? { ...metadata, ownerReferences: left } : metadata;
  return { ...object, metadata: kept };
}

/** A Namespace's own finalizers, which are in its spec: it stays until its content is gone. */
export function namespaceFinalizers(object: KubeObject): string[] {
  if (!isNamespace(object)) return [];
  const spec = object["spec"];
  const listed = isJsonObject(spec) ? spec["finalizers"] : undefined;
  return Array.isArray(listed) ? listed.filter((name) => typeof name === "string") : [];
}

export function isNamespace(object: KubeObject): boolean {
  return object.kind === "Namespace" && object.apiVersion === "v1";
}

function finalizersUnder(options: DeletionOptions, current: readonly string[]): string[] {
  const others = current.filter((name) => name !== foregroundFinalizer && name !== orphanFinalizer);
  const added = collectorFinalizer(options, current);
  return added === undefined ? others : [...others, added];
}

function collectorFinalizer(
  options: DeletionOptions,
  current: readonly string[],
): string | undefined {
  if (options.orphanDependents !== undefined) {
    return options.orphanDependents ? orphanFinalizer : undefined;
  }
  switch (options.propagationPolicy) {
    case "Orphan":
      return orphanFinalizer;
    case "Foreground":
      return foregroundFinalizer;
    case "Background":
      return undefined;
    default:
      // Nothing was asked for: what the object itself carries decides.
      return current.find((name) => name === orphanFinalizer || name === foregroundFinalizer);
  }
}

function marked(object: KubeObject, finalizers: string[], nowMs: number): KubeObject {
  const { finalizers: _old, ...metadata } = object.metadata;
  const { deletionTimestamp, generation } = metadata;
  const isFirst = deletionTimestamp === undefined;
  const next: KubeObject = {
    ...object,
    metadata: {
      ...metadata,
      ...(finalizers.length > 0 ? { finalizers } : {}),
      deletionTimestamp: deletionTimestamp ?? formatTime(nowMs),
      deletionGracePeriodSeconds: 0,
      // Its controllers now have something else to do: that is a new generation.
      ...(isFirst && generation ? { generation: generation + 1 } : {}),
    },
  };
  if (!isNamespace(object)) return next;
  const status = isJsonObject(object["status"]) ? object["status"] : {};
  return { ...next, status: { ...status, phase: "Terminating" } };
}

function sameNames(left: readonly string[], right: readonly string[]): boolean {
  const names = new Set(left);
  return names.size === new Set(right).size && right.every((name) => names.has(name));
}
