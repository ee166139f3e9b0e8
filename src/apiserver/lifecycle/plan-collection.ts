import type { KubeObject, OwnerReference } from "../../kernel/object.ts";
import { foregroundFinalizer, orphanFinalizer, type DeletionOptions } from "../objects/index.ts";
import { waitingOf } from "./owner-graph.ts";

/** What an owner reference leads to. */
export type OwnerState =
  /** The owner exists. */
  | "solid"
  /** It exists, is being deleted, and waits for its dependents to be deleted. */
  | "foreground"
  /** It exists, is being deleted, and waits for its dependents to be let go. */
  | "orphan"
  /** The store has nothing of this name with this uid. */
  | "absent"
  /** Its kind is not served, or may not own this object: nothing can be said. */
  | "unknown";

/** What the planner may ask about the rest of the world. */
export interface CollectionView {
  ownerState(owner: OwnerReference): OwnerState;
  hasDependents(): boolean;
  /** Whether dependents still keep an object that is deleted in the foreground. */
  isBlocked(): boolean;
}

/** The one next thing that the garbage collector does with an object. */
export type CollectionStep =
  | { readonly do: "rest" }
  | { readonly do: "release"; readonly uids: ReadonlySet<string> }
  | { readonly do: "finish"; readonly finalizer: string }
  | { readonly do: "delete"; readonly options: DeletionOptions };

const rest: CollectionStep = { do: "rest" };

/**
 * Decides the next thing for one object. Pure; run again after every step. An object is deleted
 * only when each of its owners is known to be gone or going; any doubt means rest.
 */
export function planCollection(object: KubeObject, view: CollectionView): CollectionStep {
  const { ownerReferences = [], deletionTimestamp } = object.metadata;
  const owners = ownerReferences.map((owner) => ({ owner, state: view.ownerState(owner) }));
  const orphaning = owners.filter(({ state }) => state === "orphan");
  if (orphaning.length > 0) return release(orphaning);
  if (deletionTimestamp !== undefined) return planDeletion(object, view);
  if (owners.length === 0 || owners.some(({ state }) => state === "unknown")) return rest;
  const gone = owners.filter(({ state }) => state !== "solid");
  // A reference to an owner in the foreground would keep that owner for ever.
  if (gone.length < owners.length) return gone.length > 0 ? release(gone) : rest;
  const isForeground = owners.some(({ state }) => state === "foreground");
  if (!isForeground || !view.hasDependents()) return { do: "delete", options: {} };
  return { do: "delete", options: { propagationPolicy: "Foreground" } };
}

function planDeletion(object: KubeObject, view: CollectionView): CollectionStep {
  switch (waitingOf(object)) {
    case "orphan":
      return view.hasDependents() ? rest : { do: "finish", finalizer: orphanFinalizer };
    case "foreground":
      return view.isBlocked() ? rest : { do: "finish", finalizer: foregroundFinalizer };
    default:
      return rest;
  }
}

function release(owners: readonly { owner: OwnerReference }[]): CollectionStep {
  return { do: "release", uids: new Set(owners.map(({ owner }) => owner.uid)) };
}
