import type { KubeObject, OwnerReference } from "../../kernel/object.ts";
import { foregroundFinalizer, orphanFinalizer } from "../objects/index.ts";

/** What an object that is being deleted waits for before it may go. */
export type Waiting = "foreground" | "orphan" | undefined;

/** An object that has owners, or that waits for its dependents. Others are not in the graph. */
export interface GraphNode {
  readonly key: string;
  readonly uid: string;
  readonly namespace: string | undefined;
  readonly owners: readonly OwnerReference[];
  readonly waiting: Waiting;
}

export function waitingOf(object: KubeObject): Waiting {
  const { deletionTimestamp, finalizers = [] } = object.metadata;
  if (deletionTimestamp === undefined) return undefined;
  if (finalizers.includes(orphanFinalizer)) return "orphan";
  return finalizers.includes(foregroundFinalizer) ? "foreground" : undefined;
}

/**
 * Who belongs to whom, by uid. It follows the store change by change, so at any moment it says
 * exactly what the store says.
 */
export class OwnerGraph {
  readonly #nodes = new Map<string, GraphNode>();
  readonly #keyOfUid = new Map<string, string>();
  readonly #dependents = new Map<string, Set<string>>();

  keys(): string[] {
    return [...this.#nodes.keys()];
  }

  get(key: string): GraphNode | undefined {
    return this.#nodes.get(key);
  }

  withUid(uid: string): GraphNode | undefined {
    const key = this.#keyOfUid.get(uid);
    return key === undefined ? undefined : this.#nodes.get(key);
  }

  /** Whether anything at all has an owner. */
  hasDependents(): boolean {
    return this.#dependents.size > 0;
  }

  /** Takes note of what an object is now; undefined: it is gone, or has no part in the graph. */
  set(key: string, object: KubeObject | undefined): GraphNode | undefined {
    this.#forget(key);
    const node = object && nodeOf(key, object);
    if (node === undefined) return undefined;
    this.#nodes.set(key, node);
    this.#keyOfUid.set(node.uid, key);
    for (const owner of node.owners) this.#dependentsOfUid(owner.uid).add(key);
    return node;
  }

  /** Everything that names this owner, rightly or not. */
  namersOf(uid: string): GraphNode[] {
    const keys = [...(this.#dependents.get(uid) ?? [])];
    return keys.map((key) => this.#nodes.get(key)).filter((node) => node !== undefined);
  }

  /** The dependents of an object: what names it as owner and may, being in the same namespace. */
  dependentsOf(owner: { uid: string; namespace: string | undefined }): GraphNode[] {
    return this.namersOf(owner.uid).filter((node) => {
      const isInReach = owner.namespace === undefined || owner.namespace === node.namespace;
      return isInReach && node.uid !== owner.uid;
    });
  }

  /**
   * Whether an object that is deleted in the foreground must still wait. Dependents that in turn
   * wait for the object itself do not count: in a circle somebody has to go first.
   */
  isBlocked(owner: GraphNode): boolean {
    return this.#blockersOf(owner).some((node) => !this.#waitsFor(node, owner.uid));
  }

  #blockersOf(owner: GraphNode): GraphNode[] {
    return this.dependentsOf(owner).filter((node) => {
      return node.owners.some((ref) => ref.uid === owner.uid && ref.blockOwnerDeletion === true);
    });
  }

  #waitsFor(node: GraphNode, uid: string): boolean {
    const seen = new Set<string>();
    const open = [node];
    for (let next = open.pop(); next !== undefined; next = open.pop()) {
      if (next.waiting !== "foreground" || seen.has(next.uid)) continue;
      seen.add(next.uid);
      const blockers = this.#blockersOf(next);
      if (blockers.some((blocker) => blocker.uid === uid)) return true;
      open.push(...blockers);
    }
    return false;
  }

  #forget(key: string): void {
    const node = this.#nodes.get(key);
    if (node === undefined) return;
    this.#nodes.delete(key);
    this.#keyOfUid.delete(node.uid);
    for (const owner of node.owners) {
      const dependents = this.#dependents.get(owner.uid);
      dependents?.delete(key);
      if (dependents?.size === 0) this.#dependents.delete(owner.uid);
    }
  }

  #dependentsOfUid(uid: string): Set<string> {
    const known = this.#dependents.get(uid);
    if (known !== undefined) return known;
    const made = new Set<string>();
    this.#dependents.set(uid, made);
    return made;
  }
}

function nodeOf(key: string, object: KubeObject): GraphNode | undefined {
  const { uid = "", namespace, ownerReferences = [] } = object.metadata;
  const waiting = waitingOf(object);
  if (ownerReferences.length === 0 && waiting === undefined) return undefined;
  return { key, uid, namespace, owners: ownerReferences, waiting };
}
