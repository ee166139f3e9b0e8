import type { Change } from "./store.ts";

/** How much of the past stays readable. */
export interface HistoryLimits {
  readonly historyMs: number;
  readonly historyChanges: number;
  readonly historyBytes: number;
}

interface Remembered {
  readonly change: Change;
  readonly atMs: number;
}

/**
 * The recent changes, in the order of their revisions, as a whole and per bucket: a watch of one
 * kind or an old page of it must not walk through the heartbeats of another.
 */
export class History {
  readonly #all: Remembered[] = [];
  readonly #byBucket = new Map<string, Change[]>();
  #bytes = 0;

  get length(): number {
    return this.#all.length;
  }

  add(change: Change, atMs: number): void {
    this.#all.push({ change, atMs });
    this.#bytes += bytesHeld(change);
    const ofBucket = this.#byBucket.get(change.bucket);
    if (ofBucket) ofBucket.push(change);
    else this.#byBucket.set(change.bucket, [change]);
  }

  /** The changes after a revision, of one bucket or of all. */
  after(revision: number, bucket: string | undefined): Change[] {
    if (bucket === undefined) {
      const start = firstAfter(this.#all.length, revision, (i) => this.#all[i]?.change);
      return this.#all.slice(start).map((remembered) => remembered.change);
    }
    const changes = this.#byBucket.get(bucket) ?? [];
    return changes.slice(firstAfter(changes.length, revision, (i) => changes[i]));
  }

  /** The oldest changes, at most so many. */
  oldest(count: number): Change[] {
    return this.#all.slice(0, count).map((remembered) => remembered.change);
  }

  /** How many of the oldest changes are beyond the limits. Without a time, age does not count. */
  excess(limits: HistoryLimits, nowMs?: number): number {
    let count = 0;
    let bytes = this.#bytes;
    for (const { change, atMs } of this.#all) {
      const isOld = nowMs !== undefined && nowMs - atMs > limits.historyMs;
      const areMany = this.#all.length - count > limits.historyChanges;
      if (!isOld && !areMany && bytes <= limits.historyBytes) break;
      bytes -= bytesHeld(change);
      count++;
    }
    return count;
  }

  /** Whether number or size are so far beyond their limits that forgetting cannot wait. */
  isOverfull(limits: HistoryLimits): boolean {
    // The eighth beyond keeps a store that stands at its limit from compacting after each write.
    return (
      this.#all.length > limits.historyChanges * 1.125 || this.#bytes > limits.historyBytes * 1.125
    );
  }

  /** Forgets the oldest changes. */
  drop(count: number): void {
    const perBucket = new Map<string, number>();
    for (const { change } of this.#all.splice(0, count)) {
      this.#bytes -= bytesHeld(change);
      perBucket.set(change.bucket, (perBucket.get(change.bucket) ?? 0) + 1);
    }
    for (const [bucket, dropped] of perBucket) this.#dropOf(bucket, dropped);
  }

  #dropOf(bucket: string, count: number): void {
    const changes = this.#byBucket.get(bucket) ?? [];
    if (changes.length === count) this.#byBucket.delete(bucket);
    else changes.splice(0, count);
  }
}

/** What a change keeps in memory that the current objects do not. */
function bytesHeld(change: Change): number {
  const last = change.type === "delete" ? change.entry.value.byteLength : 0;
  return last + (change.previous?.value.byteLength ?? 0);
}

function firstAfter(
  length: number,
  revision: number,
  changeAt: (index: number) => Change | undefined,
): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((changeAt(middle)?.entry.revision ?? 0) > revision) high = middle;
    else low = middle + 1;
  }
  return low;
}
