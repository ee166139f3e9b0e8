import type { Resource } from "../../api/resource.ts";
import { groupOf, type KubeObject, type OwnerReference } from "../../kernel/object.ts";
import type { Change, Decision, Entry } from "../../store/store.ts";
import { bucketOf, idOf, type ServerEnvironment } from "../contract.ts";
import {
  decode,
  deletionDecision,
  updateDecision,
  withoutFinalizer,
  withoutOwners,
} from "../objects/index.ts";
import { OwnerGraph, waitingOf, type GraphNode } from "./owner-graph.ts";
import { planCollection, type CollectionStep, type OwnerState } from "./plan-collection.ts";
import { formatKey, parseKey } from "./store-key.ts";

const keep: Decision = { do: "keep" };

/**
 * Garbage collection by ownerReferences. `observe` takes note of a change and says whom to look at;
 * `collect` looks at one object and does the one next thing.
 */
export class Collector {
  readonly #environment: ServerEnvironment;
  readonly #look: (key: string) => void;
  readonly #graph = new OwnerGraph();

  /** `look` is called with the key of every object that may have something to be done. */
  constructor(environment: ServerEnvironment, look: (key: string) => void) {
    this.#environment = environment;
    this.#look = look;
  }

  /** Takes note of an object that was there before anything was watched. */
  observeEntry(bucket: string, entry: Entry): void {
    if (!mayMatter(entry)) return;
    const node = this.#graph.set(formatKey({ bucket, id: entry.id }), decode(entry));
    if (node !== undefined) this.#look(node.key);
  }

  observe(change: Change): void {
    const key = formatKey({ bucket: change.bucket, id: change.entry.id });
    const before = this.#graph.get(key);
    if (change.type === "delete") return this.#observeDeletion(key, change.entry, before);
    if (before === undefined && !mayMatter(change.entry)) return;
    this.#observeUpdate(before, this.#graph.set(key, decode(change.entry)));
  }

  /** Looks at every object of the graph again: what was unknown may be known now. */
  reconsider(): void {
    for (const key of this.#graph.keys()) this.#look(key);
  }

  /** Does the next thing for one object. Safe to repeat; a lost race decides on the newer state. */
  async collect(key: string): Promise<void> {
    const { store, clock } = this.#environment;
    const entry = store.get(parseKey(key));
    if (entry === undefined || this.#plan(key, decode(entry)).do === "rest") return;
    await store.write(parseKey(key), (current) => {
      if (current === undefined) return keep;
      const object = decode(current);
      return decisionOf(object, this.#plan(key, object), clock.nowMs());
    });
  }

  #plan(key: string, object: KubeObject): CollectionStep {
    const { uid = "", namespace } = object.metadata;
    const node = this.#graph.get(key);
    return planCollection(object, {
      ownerState: (owner) => this.#ownerState(owner, namespace),
      // An object that waits to be let go has even those dependents that name it wrongly.
      hasDependents: () =>
        (waitingOf(object) === "orphan"
          ? this.#graph.namersOf(uid)
          : this.#graph.dependentsOf({ uid, namespace })
        ).some((dependent) => dependent.uid !== uid),
      isBlocked: () => node !== undefined && this.#graph.isBlocked(node),
    });
  }

  /** Asks the store itself, by name and uid: the graph does not hold every owner. */
  #ownerState(owner: OwnerReference, namespace: string | undefined): OwnerState {
    const resource = this.#resourceOf(owner);
    if (resource === undefined) return "unknown";
    if (resource.namespaced && namespace === undefined) return "unknown";
    const id = idOf(resource.namespaced ? namespace : undefined, owner.name);
    const entry = this.#environment.store.get({ bucket: bucketOf(resource), id });
    const object = entry && decode(entry);
    if (object?.metadata.uid !== owner.uid) return "absent";
    return waitingOf(object) ?? "solid";
  }

  #resourceOf(owner: OwnerReference): Resource | undefined {
    const group = groupOf(owner.apiVersion);
    const version = group === "" ? owner.apiVersion : owner.apiVersion.slice(group.length + 1);
    return this.#environment.catalogue.findKind(group, version, owner.kind);
  }

  #observeUpdate(before: GraphNode | undefined, after: GraphNode | undefined): void {
    if (after !== undefined) this.#look(after.key);
    const isChanged = before?.waiting !== after?.waiting;
    for (const node of [before, after]) {
      if (node === undefined) continue;
      if (isChanged) this.#lookAtNamers(node.uid);
      // An owner that waits may wait no longer, if it lost this dependent or its claim to block.
      this.#lookAtWaitingOwners(node.owners);
    }
  }

  #observeDeletion(key: string, entry: Entry, before: GraphNode | undefined): void {
    this.#graph.set(key, undefined);
    if (before !== undefined) this.#lookAtWaitingOwners(before.owners);
    if (!this.#graph.hasDependents()) return;
    this.#lookAtNamers(decode(entry).metadata.uid ?? "");
  }

  #lookAtNamers(uid: string): void {
    for (const node of this.#graph.namersOf(uid)) this.#look(node.key);
  }

  #lookAtWaitingOwners(owners: readonly OwnerReference[]): void {
    for (const owner of owners) {
      const node = this.#graph.withUid(owner.uid);
      if (node?.waiting !== undefined) this.#look(node.key);
    }
  }
}

function decisionOf(object: KubeObject, step: CollectionStep, nowMs: number): Decision {
  switch (step.do) {
    case "rest":
      return keep;
    case "release":
      return updateDecision(withoutOwners(object, step.uids));
    case "finish":
      return updateDecision(withoutFinalizer(object, step.finalizer));
    case "delete":
      return deletionDecision(object, step.options, nowMs);
  }
}

/**
 * Whether an object can have a part in the graph, without parsing it. Most have none, and the
 * server parses every object often enough. The names of members are never escaped in what we store.
 */
function mayMatter({ value }: Entry): boolean {
  const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  return bytes.includes('"ownerReferences"') || bytes.includes('"deletionTimestamp"');
}
