import type { Resource } from "../../api/resource.ts";
import type { Cancel } from "../../kernel/clock.ts";
import { isJsonObject } from "../../kernel/json.ts";
import { qualifiedResource } from "../../kernel/status.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { Change, Decision, Entry } from "../../store/store.ts";
import { bucketOf, type ServerEnvironment } from "../contract.ts";
import {
  decode,
  deletionDecision,
  namespaceFinalizers,
  put,
  updateDecision,
} from "../objects/index.ts";
import { withContentConditions, type RemainingContent } from "./namespace-conditions.ts";

/** The finalizer of a Namespace that stands for its content. */
const contentFinalizer = "kubernetes";
/** Objects deleted at once; their writes reach the disk together. */
const pageItems = 100;
/** A large namespace empties object by object; it is looked at as a whole no oftener than this. */
const passEveryMs = 1_000;

const namespacesBucket = bucketOf({ group: "", plural: "namespaces" });
const keep: Decision = { do: "keep" };

interface Termination {
  /** On the monotonic clock. */
  lastPassMs: number;
  cancel: Cancel | undefined;
}

/**
 * Empties namespaces that are being deleted, and lets them go when nothing is left. `observe` takes
 * note of a change; `terminate` goes once over one namespace.
 */
export class Terminator {
  readonly #environment: ServerEnvironment;
  readonly #look: (namespace: string) => void;
  readonly #terminating = new Map<string, Termination>();

  constructor(environment: ServerEnvironment, look: (namespace: string) => void) {
    this.#environment = environment;
    this.#look = look;
  }

  observeEntry(bucket: string, entry: Entry): void {
    if (bucket === namespacesBucket) this.#observeNamespace(entry.id, decode(entry));
  }

  observe(change: Change): void {
    const { bucket, entry } = change;
    if (bucket === namespacesBucket) {
      const isGone = change.type === "delete";
      return this.#observeNamespace(entry.id, isGone ? undefined : decode(entry));
    }
    if (this.#terminating.size === 0) return;
    const slash = entry.id.indexOf("/");
    if (slash >= 0) this.#contentChanged(entry.id.slice(0, slash));
  }

  stop(): void {
    for (const { cancel } of this.#terminating.values()) cancel?.();
    this.#terminating.clear();
  }

  /** Deletes what is there, says what remains, and lets the namespace go when that is nothing. */
  async terminate(namespace: string): Promise<void> {
    const { store, clock } = this.#environment;
    const key = { bucket: namespacesBucket, id: namespace };
    const entry = store.get(key);
    if (entry === undefined || !isTerminating(decode(entry))) return;
    const termination = this.#terminating.get(namespace);
    if (termination) termination.lastPassMs = clock.monotonicMs();
    for (const resource of this.#resources()) await this.#deleteAll(namespace, resource);
    const remaining = this.#remaining(namespace);
    await store.write(key, (current) => {
      const object = current && decode(current);
      if (object === undefined || !isTerminating(object)) return keep;
      const reported = withContentConditions(object, remaining, clock.nowMs());
      // That nothing remains is believed only in a later pass than the one that says so: what was
      // admitted just before the namespace was marked is durable by then, and seen.
      if (reported !== undefined) return put(reported);
      return this.#isEmpty(namespace) ? updateDecision(withoutContentFinalizer(object)) : keep;
    });
  }

  #observeNamespace(name: string, object: KubeObject | undefined): void {
    if (object === undefined || !isTerminating(object)) {
      this.#terminating.get(name)?.cancel?.();
      this.#terminating.delete(name);
      return;
    }
    if (!this.#terminating.has(name)) {
      this.#terminating.set(name, { lastPassMs: -Infinity, cancel: undefined });
    }
    this.#contentChanged(name);
  }

  #contentChanged(namespace: string): void {
    const termination = this.#terminating.get(namespace);
    if (termination === undefined) return;
    const { clock } = this.#environment;
    const waitMs = termination.lastPassMs + passEveryMs - clock.monotonicMs();
    if (waitMs > 0 && !this.#isEmpty(namespace)) {
      termination.cancel ??= clock.after(waitMs, () => {
        termination.cancel = undefined;
        this.#look(namespace);
      });
      return;
    }
    termination.cancel?.();
    termination.cancel = undefined;
    this.#look(namespace);
  }

  async #deleteAll(namespace: string, resource: Resource): Promise<void> {
    const { store, clock } = this.#environment;
    const bucket = bucketOf(resource);
    for (let afterId = ""; ;) {
      const page = this.#list(bucket, { namespace, afterId, limit: pageItems });
      const living = page.filter((entry) => !isDeleting(decode(entry)));
      const writes = living.map(({ id }) =>
        store.write({ bucket, id }, (current) => {
          const object = current && decode(current);
          if (object === undefined || isDeleting(object)) return keep;
          return deletionDecision(object, { propagationPolicy: "Background" }, clock.nowMs());
        }),
      );
      await Promise.all(writes);
      const last = page.at(-1);
      if (last === undefined || page.length < pageItems) return;
      afterId = last.id;
    }
  }

  #remaining(namespace: string): RemainingContent {
    const resources = new Map<string, number>();
    const finalizers = new Map<string, number>();
    for (const resource of this.#resources()) {
      const entries = this.#list(bucketOf(resource), { namespace });
      // Kubernetes always writes the dot, also where the group is empty.
      const name = resource.group === "" ? `${resource.plural}.` : qualifiedName(resource);
      if (entries.length > 0) resources.set(name, entries.length);
      for (const entry of entries) {
        for (const finalizer of decode(entry).metadata.finalizers ?? []) {
          finalizers.set(finalizer, (finalizers.get(finalizer) ?? 0) + 1);
        }
      }
    }
    return { resources, finalizers };
  }

  #isEmpty(namespace: string): boolean {
    return this.#resources().every((resource) => {
      return this.#list(bucketOf(resource), { namespace, limit: 1 }).length === 0;
    });
  }

  #list(
    bucket: string,
    options: { namespace: string; afterId?: string; limit?: number },
  ): readonly Entry[] {
    const { namespace, ...rest } = options;
    const result = this.#environment.store.list({ bucket, prefix: `${namespace}/`, ...rest });
    return result.ok ? result.entries : [];
  }

  /** One of each bucket: a kind that is served in two versions is stored once. */
  #resources(): Resource[] {
    const namespaced = this.#environment.catalogue.all().filter((kind) => kind.namespaced);
    return [...new Map(namespaced.map((kind) => [bucketOf(kind), kind])).values()];
  }
}

function qualifiedName(resource: Resource): string {
  return qualifiedResource({ group: resource.group, resource: resource.plural });
}

function isDeleting(object: KubeObject): boolean {
  return object.metadata.deletionTimestamp !== undefined;
}

function isTerminating(namespace: KubeObject): boolean {
  return isDeleting(namespace) && namespaceFinalizers(namespace).includes(contentFinalizer);
}

function withoutContentFinalizer(namespace: KubeObject): KubeObject {
  const left = namespaceFinalizers(namespace).filter((name) => name !== contentFinalizer);
  const spec = isJsonObject(namespace["spec"]) ? namespace["spec"] : {};
  return { ...namespace, spec: { ...spec, finalizers: left } };
}
