/** What the disk holds of one change. */
export interface JournalRecord {
  readonly revision: number;
  readonly bucket: string;
  readonly id: string;
  readonly type: "put" | "delete";
  readonly value: Uint8Array;
}

/**
 * The durable half of a store: an ordered log of records, from which superseded ones are removed.
 * Replaying what `load` yields, in order, gives the objects and, after `compactedRevision`, the
 * changes. It is loaded once, before anything else, and its calls never overlap.
 */
export interface Journal {
  load(): Promise<JournalContent>;
  /**
   * All or nothing, durable when it resolves. A rejection with the StoreError code StorageFull or
   * StorageFailed means: nothing stored, and the next append may succeed. After any other rejection
   * nobody knows what is on the disk, and the journal must not be used again.
   */
  append(records: readonly JournalRecord[]): Promise<void>;
  /**
   * Removes the superseded records with these revisions and remembers the new mark, in one step.
   * Rejects as `append` does; repeating it is harmless.
   */
  compact(compactedRevision: number, superseded: readonly number[]): Promise<void>;
  close(): Promise<void>;
}

export interface JournalContent {
  /** The newest revision ever stored, also if its record is gone. */
  readonly revision: number;
  readonly compactedRevision: number;
  /** In the order of revisions. Can be walked once, and is walked to its end. */
  readonly records: Iterable<JournalRecord>;
}
