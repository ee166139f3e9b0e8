/**
 * Revisioned objects and their watch log.
 *
 * All current objects and the recent changes are in memory, so reads are synchronous; a `Journal`
 * makes writes durable. The semantics are written once, in `revisions.ts`; what differs between the
 * SQLite store and its in-memory twin is only the journal underneath.
 *
 * Guarantees:
 * - A write is acknowledged, readable and delivered to watchers only after it is durable.
 * - One global revision, which only grows, also across restarts and failed writes.
 * - Changes are delivered in the order of their revisions, without gaps.
 * - Writes to the same key are serialised; each decides on the newest durable state.
 */
export interface Store {
  /** The newest durable revision. */
  revision(): number;
  /** Changes up to and including this revision can no longer be read back. */
  compactedRevision(): number;
  get(key: Key): Entry | undefined;
  /** Entries of one bucket in the order of their ids, at the newest or an older revision. */
  list(query: ListQuery): ListResult;
  count(bucket: string): number;
  /**
   * Decides and writes one key. `decide` runs synchronously on the newest durable entry, as soon as
   * no other write of that key is under way, and may throw: then nothing happens and the promise
   * rejects with what was thrown. Resolves when the write is durable, or at once for `keep`.
   * Rejects with a StoreError if the disk refused; then nothing was stored, unless its code is
   * OutcomeUnknown.
   */
  write(key: Key, decide: (current: Entry | undefined) => Decision): Promise<WriteResult>;
  /**
   * Delivers every change after `afterRevision`: those that were, before the call returns; those to
   * come, as they do. A write is acknowledged after all watchers had it.
   */
  watch(options: WatchOptions): WatchResult;
  /**
   * Forgets changes older than the history limits. Called from time to time by the app; the bounds
   * on number and size the store keeps by itself.
   */
  compact(nowMs: number): Promise<void>;
  /** Waits for writes under way and closes the journal. Later writes are refused. */
  close(): Promise<void>;
}

/** The bucket is a kind ("berth.dev/virtualmachines"), the id `namespace/name` or `name`. */
export interface Key {
  readonly bucket: string;
  readonly id: string;
}

export interface Entry {
  readonly id: string;
  /** The revision that wrote this value. */
  readonly revision: number;
  /** The object as JSON, its resourceVersion included: served as it is, without parsing. */
  readonly value: Uint8Array;
}

/** The encoder is given the revision under which the value will be stored. */
export type Decision =
  | { readonly do: "put"; readonly encode: (revision: number) => Uint8Array }
  /** The encoded value is the last state, for the watchers. */
  | { readonly do: "delete"; readonly encode: (revision: number) => Uint8Array }
  | { readonly do: "keep" };

export interface WriteResult {
  /** What is stored now, or for a delete the last state. Undefined for `keep` of an absent key. */
  readonly entry: Entry | undefined;
  readonly changed: boolean;
}

export interface ListQuery {
  readonly bucket: string;
  /** Only ids that start so: "default/" for a namespace. */
  readonly prefix?: string;
  /** Only ids that come after this one. */
  readonly afterId?: string;
  readonly limit?: number;
  /** As of this revision. Absent: now. */
  readonly atRevision?: number;
}

export type ListResult =
  | {
      readonly ok: true;
      readonly revision: number;
      readonly entries: readonly Entry[];
      /** How many matching entries come after the last one given. */
      readonly remaining: number;
    }
  | { readonly ok: false; readonly why: "compacted" | "future" };

export interface Change {
  readonly type: "put" | "delete";
  readonly bucket: string;
  /** For a delete, the last state under the revision of the deletion. */
  readonly entry: Entry;
  /** What stood there before. Absent: the key is new. */
  readonly previous: Entry | undefined;
}

export interface WatchOptions {
  /** One bucket, or every one. */
  readonly bucket?: string;
  readonly prefix?: string;
  readonly afterRevision: number;
  /**
   * Called with one or more changes in order. Must not throw; may use the store, also to stop this
   * or another watch.
   */
  readonly deliver: (changes: readonly Change[]) => void;
  /** The store closed; nothing more will come. */
  readonly closed?: () => void;
}

export type WatchResult =
  | { readonly ok: true; readonly stop: () => void }
  | { readonly ok: false; readonly why: "compacted" | "future" };

/** Why the store did not take a write, or could not be opened. Told apart by `code`. */
export class StoreError extends Error {
  readonly code: StoreErrorCode;

  constructor(code: StoreErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "StoreError";
    this.code = code;
  }
}

export type StoreErrorCode =
  /** The disk is full: nothing was stored, later writes may succeed. */
  | "StorageFull"
  /** The disk failed otherwise: nothing was stored. */
  | "StorageFailed"
  /** The disk failed in the middle: the write may or may not be there. The store takes no more. */
  | "OutcomeUnknown"
  /** Too many writes are waiting. */
  | "Overloaded"
  /** The store is closed or closing. */
  | "Closed"
  /** Another process has the data folder. */
  | "Locked"
  /** What is on the disk is not what was written. */
  | "Corrupt"
  /** A newer build wrote this folder. */
  | "TooNew"
  /** A value cannot be decrypted with the key at hand. */
  | "Unreadable"
  /** There is no store or backup where one was said to be. */
  | "Missing"
  /** Something is there that would be overwritten. */
  | "Exists";
