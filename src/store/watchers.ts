import type { Change, WatchOptions } from "./store.ts";

interface Watcher {
  readonly options: WatchOptions;
  /** Changes up to here were delivered, or are older than the watcher wants. */
  seenRevision: number;
}

/** Who wants to hear of changes. Watchers of one bucket cost nothing when another changes. */
export class Watchers {
  readonly #ofBucket = new Map<string, Set<Watcher>>();
  readonly #ofAll = new Set<Watcher>();

  /** Delivers the past and subscribes to what comes. Returns what stops it, at once. */
  add(options: WatchOptions, past: readonly Change[], revision: number): () => void {
    const watcher: Watcher = { options, seenRevision: options.afterRevision };
    const group = this.#groupFor(options.bucket);
    // Subscribed before the past is delivered: what the callback sets off must not be missed, and
    // the revision keeps it from being told twice.
    group.add(watcher);
    tell(watcher, past, revision);
    return () => this.#remove(watcher);
  }

  /** Delivers durable changes, which come in the order of their revisions. */
  deliver(changes: readonly Change[]): void {
    const revision = changes.at(-1)?.entry.revision ?? 0;
    const perBucket = Map.groupBy(changes, (change) => change.bucket);
    for (const [bucket, ofBucket] of perBucket) {
      this.#tellGroup(this.#ofBucket.get(bucket), ofBucket, revision);
    }
    this.#tellGroup(this.#ofAll, changes, revision);
  }

  close(): void {
    const everyone = [
      ...this.#ofAll,
      ...[...this.#ofBucket.values()].flatMap((group) => [...group]),
    ];
    this.#ofAll.clear();
    this.#ofBucket.clear();
    for (const watcher of everyone) guard(() => watcher.options.closed?.());
  }

  #tellGroup(group: Set<Watcher> | undefined, changes: readonly Change[], revision: number): void {
    if (!group) return;
    // A copy, since a callback may add watchers; and a look at the set, since it may remove some.
    const listeners = [...group];
    for (const watcher of listeners) {
      if (group.has(watcher)) tell(watcher, changes, revision);
    }
  }

  #groupFor(bucket: string | undefined): Set<Watcher> {
    if (bucket === undefined) return this.#ofAll;
    const known = this.#ofBucket.get(bucket);
    if (known) return known;
    const made = new Set<Watcher>();
    this.#ofBucket.set(bucket, made);
    return made;
  }

  #remove(watcher: Watcher): void {
    const { bucket } = watcher.options;
    if (bucket === undefined) {
      this.#ofAll.delete(watcher);
      return;
    }
    const group = this.#ofBucket.get(bucket);
    group?.delete(watcher);
    if (group?.size === 0) this.#ofBucket.delete(bucket);
  }
}

function tell(watcher: Watcher, changes: readonly Change[], revision: number): void {
  const { prefix = "", deliver } = watcher.options;
  const { seenRevision } = watcher;
  const wanted = changes.filter(
    ({ entry }) => entry.revision > seenRevision && entry.id.startsWith(prefix),
  );
  watcher.seenRevision = Math.max(seenRevision, revision);
  if (wanted.length > 0) guard(() => deliver(wanted));
}

/**
 * A callback that throws is a bug of its owner. It must be as loud as any other, and must not keep
 * the next watcher from hearing or a durable write from being acknowledged.
 */
function guard(callback: () => void): void {
  try {
    callback();
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
