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
 * changes. Calls of `append` never overlap.
 */
export interface Journal {
  load(): Promise<JournalContent>;
  /** All or nothing, durable when it resolves. A rejection with a StoreError means: nothing stored. */
  append(records: readonly JournalRecord[]): Promise<void>;
  /** Removes the superseded records with these revisions and remembers the new mark, in one step. */
  compact(compactedRevision: number, superseded: readonly number[]): Promise<void>;
  close(): Promise<void>;
}

export interface JournalContent {
  /** The newest revision ever stored, also if its record is gone. */
  readonly revision: number;
  readonly compactedRevision: number;
  /** In the order of revisions. */
  readonly records: Iterable<JournalRecord>;
}
