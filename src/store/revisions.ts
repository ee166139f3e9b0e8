import { assert } from "../kernel/assert.ts";
import { Bucket, boundsOf, sortById } from "./bucket.ts";
import { History, type HistoryLimits } from "./history.ts";
import type { JournalContent, JournalRecord } from "./journal.ts";
import type { Change, Entry, Key, ListQuery, ListResult } from "./store.ts";

/** One step of forgetting: what the journal is told, and how many changes memory then drops. */
export interface CompactionStep {
  readonly compactedRevision: number;
  readonly superseded: readonly number[];
  readonly changes: number;
}

/**
 * What is durable, in memory: the current objects and the recent changes. Nothing here waits or
 * fails; whoever applies a record has made sure that it is on the disk.
 */
export class Revisions {
  readonly #buckets = new Map<string, Bucket>();
  readonly #history = new History();
  readonly #limits: HistoryLimits;
  #revision = 0;
  #compactedRevision = 0;

  constructor(limits: HistoryLimits) {
    this.#limits = limits;
  }

  get revision(): number {
    return this.#revision;
  }

  get compactedRevision(): number {
    return this.#compactedRevision;
  }

  /** Takes over what a journal holds. Only for an empty instance. */
  replay(content: JournalContent, nowMs: number): void {
    assert(this.#revision === 0, "a journal is replayed into an empty store");
    this.#compactedRevision = content.compactedRevision;
    for (const record of content.records) this.apply(record, nowMs);
    assert(content.revision >= this.#revision, "a journal knows its newest revision");
    this.#revision = content.revision;
  }

  /** Makes a durable record visible. Records come in the order of their revisions. */
  apply(record: JournalRecord, nowMs: number): Change {
    assert(record.revision > this.#revision, "revisions only grow");
    const bucket = this.#bucketFor(record.bucket);
    const entry: Entry = { id: record.id, revision: record.revision, value: record.value };
    const previous = bucket.get(record.id);
    if (record.type === "put") bucket.set(entry);
    else bucket.delete(record.id);
    this.#revision = record.revision;
    const change: Change = { type: record.type, bucket: record.bucket, entry, previous };
    if (record.revision > this.#compactedRevision) this.#history.add(change, nowMs);
    return change;
  }

  get(key: Key): Entry | undefined {
    return this.#buckets.get(key.bucket)?.get(key.id);
  }

  count(bucket: string): number {
    return this.#buckets.get(bucket)?.size ?? 0;
  }

  list(query: ListQuery): ListResult {
    const revision = query.atRevision ?? this.#revision;
    const why = this.#outOfReach(revision);
    if (why) return { ok: false, why };
    const sorted = this.#sortedAt(query.bucket, revision);
    const { start, end } = boundsOf(sorted, query);
    const stop = Math.min(end, start + (query.limit ?? Infinity));
    return { ok: true, revision, entries: sorted.slice(start, stop), remaining: end - stop };
  }

  /** The changes after a revision, or why they cannot be told. */
  changesAfter(
    revision: number,
    bucket: string | undefined,
  ): { ok: true; changes: Change[] } | { ok: false; why: "compacted" | "future" } {
    const why = this.#outOfReach(revision);
    return why ? { ok: false, why } : { ok: true, changes: this.#history.after(revision, bucket) };
  }

  /** How many changes the limits ask to forget. Without a time, age does not count. */
  excess(nowMs?: number): number {
    return this.#history.excess(this.#limits, nowMs);
  }

  isOverfull(): boolean {
    return this.#history.isOverfull(this.#limits);
  }

  /**
   * What forgetting the oldest changes means for the journal: every value that one of them replaced
   * is superseded, and so is a deletion itself, since nothing is left for it to delete.
   */
  planCompaction(count: number): CompactionStep | undefined {
    const changes = this.#history.oldest(count);
    const last = changes.at(-1);
    if (!last) return undefined;
    const superseded = changes.flatMap((change) => [
      ...(change.previous ? [change.previous.revision] : []),
      ...(change.type === "delete" ? [change.entry.revision] : []),
    ]);
    return {
      compactedRevision: last.entry.revision,
      superseded,
      changes: changes.length,
    };
  }

  /** Forgets what the journal has forgotten. */
  applyCompaction(step: CompactionStep): void {
    this.#compactedRevision = step.compactedRevision;
    this.#history.drop(step.changes);
  }

  #outOfReach(revision: number): "compacted" | "future" | undefined {
    if (revision < this.#compactedRevision) return "compacted";
    return revision > this.#revision ? "future" : undefined;
  }

  /** The value of a key at a revision is what its first later change replaced. */
  #sortedAt(bucketName: string, revision: number): readonly Entry[] {
    const now = this.#buckets.get(bucketName)?.sorted() ?? [];
    const changes = this.#history.after(revision, bucketName);
    if (changes.length === 0) return now;
    const then = new Map<string, Entry | undefined>();
    for (const { entry, previous } of changes) {
      if (!then.has(entry.id)) then.set(entry.id, previous);
    }
    const untouched = now.filter((entry) => !then.has(entry.id));
    const replaced = [...then.values()].filter((entry) => entry !== undefined);
    return sortById([...untouched, ...replaced]);
  }

  #bucketFor(name: string): Bucket {
    const known = this.#buckets.get(name);
    if (known) return known;
    const made = new Bucket();
    this.#buckets.set(name, made);
    return made;
  }
}
