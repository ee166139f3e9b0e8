import { guard } from "../kernel/guard.ts";
import type { JournalRecord } from "./journal.ts";
import type { Revisions } from "./revisions.ts";
import { type Decision, type Entry, type Key, StoreError, type WriteResult } from "./store.ts";

/** Records of one append. More would only make the next writer wait longer. */
const batchRecordsMax = 1_000;
/** The same in bytes: what SQLite's log, the message to its thread and one fsync should carry. */
const batchBytesMax = 16 * 1024 * 1024;
/** Encoded values waiting for the disk. The number alone would allow gigabytes of large objects. */
const pendingBytesMax = 256 * 1024 * 1024;

/** A write that was asked for and has no answer yet. */
interface Write {
  readonly key: Key;
  readonly decide: (current: Entry | undefined) => Decision;
  readonly resolve: (result: WriteResult) => void;
  readonly reject: (reason: unknown) => void;
}

/** A write that has decided and waits for the disk. */
interface Decided {
  readonly write: Write;
  readonly record: JournalRecord;
}

export interface WriteQueueOptions {
  readonly revisions: Revisions;
  readonly pendingWritesMax: number;
  /** Called when there is something to take, once until it is taken. */
  readonly ready: () => void;
}

/**
 * Writes between their request and the disk. At most one write per key has decided; the others of
 * that key wait in line and decide, one after the other, on what the one before left behind.
 */
export class WriteQueue {
  readonly #options: WriteQueueOptions;
  /** Per key with a write under way, those that wait for it. */
  readonly #lines = new Map<string, Write[]>();
  #decided: Decided[] = [];
  #lastRevision: number;
  #pendingWrites = 0;
  #pendingBytes = 0;
  #refusal: StoreError | undefined;

  constructor(options: WriteQueueOptions) {
    this.#options = options;
    this.#lastRevision = options.revisions.revision;
  }

  get pendingWrites(): number {
    return this.#pendingWrites;
  }

  write(key: Key, decide: Write["decide"]): Promise<WriteResult> {
    return new Promise((resolve, reject) => {
      const refusal = this.#refusal;
      if (refusal && !guard("store-takes-writes", refusal === undefined)) return reject(refusal);
      const overload = this.#overload();
      if (overload) return reject(overload);
      this.#pendingWrites++;
      const write: Write = { key, decide, resolve, reject };
      const line = this.#lines.get(lineOf(key));
      if (line && !guard("store-one-decision-per-key", line === undefined)) line.push(write);
      else this.#start([write]);
    });
  }

  /** The next batch, in the order of revisions; empty if there is none. */
  take(): readonly JournalRecord[] {
    let count = 0;
    let bytes = 0;
    for (const { record } of this.#decided) {
      bytes += record.value.byteLength;
      if (count > 0 && (count === batchRecordsMax || bytes > batchBytesMax)) break;
      count++;
    }
    return this.#decided.slice(0, count).map(({ record }) => record);
  }

  /** The batch that was taken is durable and visible: its writers may know. */
  acknowledge(count: number): void {
    this.#settle(count, ({ write, record }) => {
      const { id, revision, value } = record;
      write.resolve({ entry: { id, revision, value }, changed: true });
    });
  }

  /** The batch that was taken is not stored. What waits behind it is not affected. */
  fail(count: number, error: StoreError): void {
    this.#settle(count, ({ write }) => write.reject(error));
  }

  /** From now on every new write is refused so; those under way go on. */
  refuse(error: StoreError): void {
    this.#refusal = error;
  }

  /** Everything that is not in the batch just taken is refused too. */
  abandon(count: number, outcomeUnknown: StoreError, neverStored: StoreError): void {
    this.refuse(neverStored);
    const decided = this.#decided;
    const waiting = [...this.#lines.values()].flat();
    this.#decided = [];
    this.#lines.clear();
    this.#pendingWrites = 0;
    this.#pendingBytes = 0;
    for (const [i, { write }] of decided.entries()) {
      write.reject(i < count ? outcomeUnknown : neverStored);
    }
    for (const write of waiting) write.reject(neverStored);
  }

  /** Lets the first of a key's line decide, and the next if it wanted nothing, until one writes. */
  #start(line: Write[]): void {
    const first = line[0];
    if (!first) return;
    const lineName = lineOf(first.key);
    // Set before anything decides: a decision that itself writes this key gets in line.
    this.#lines.set(lineName, line);
    for (let write = line.shift(); write; write = line.shift()) {
      const record = this.#decide(write);
      if (record) return this.#enqueue({ write, record });
    }
    this.#lines.delete(lineName);
  }

  /** Undefined if the write is already answered, because it kept what is there or threw. */
  #decide(write: Write): JournalRecord | undefined {
    try {
      const current = this.#options.revisions.get(write.key);
      const decision = write.decide(current);
      if (decision.do !== "keep") return this.#record(write.key, decision);
      write.resolve({ entry: current, changed: false });
    } catch (error) {
      write.reject(error);
    }
    this.#pendingWrites--;
    return undefined;
  }

  #record(key: Key, decision: Exclude<Decision, { do: "keep" }>): JournalRecord {
    // A revision that fails to be encoded or stored is never used again; gaps are harmless.
    const revision = ++this.#lastRevision;
    const value = ownBytes(decision.encode(revision));
    return { revision, bucket: key.bucket, id: key.id, type: decision.do, value };
  }

  #enqueue(decided: Decided): void {
    this.#pendingBytes += decided.record.value.byteLength;
    if (this.#decided.push(decided) === 1) this.#options.ready();
  }

  #settle(count: number, answer: (decided: Decided) => void): void {
    const settled = this.#decided.splice(0, count);
    for (const decided of settled) {
      this.#pendingWrites--;
      this.#pendingBytes -= decided.record.value.byteLength;
      answer(decided);
    }
    if (this.#decided.length > 0) this.#options.ready();
    for (const { write } of settled) this.#startNext(write.key);
  }

  #startNext(key: Key): void {
    const line = this.#lines.get(lineOf(key));
    if (line && line.length > 0) this.#start(line);
    else this.#lines.delete(lineOf(key));
  }

  #overload(): StoreError | undefined {
    const { pendingWritesMax } = this.#options;
    const isFull = this.#pendingWrites >= pendingWritesMax || this.#pendingBytes >= pendingBytesMax;
    if (guard("store-not-overloaded", !isFull)) {
      return undefined;
    }
    return new StoreError("Overloaded", "too many writes are waiting for the disk; try again");
  }
}

function lineOf(key: Key): string {
  return `${key.bucket}\0${key.id}`;
}

/**
 * Bytes that are the whole of their buffer. A view would keep all of a pooled buffer or request
 * body in memory, and a message to another thread would carry it along.
 */
function ownBytes(bytes: Uint8Array): Uint8Array {
  const isWhole = bytes.byteLength === bytes.buffer.byteLength;
  return isWhole && !Buffer.isBuffer(bytes) ? bytes : new Uint8Array(bytes);
}
