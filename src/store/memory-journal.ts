import { deserialize, serialize } from "node:v8";
import { crc32 } from "node:zlib";
import { assert } from "../kernel/assert.ts";
import type { Journal, JournalContent, JournalRecord } from "./journal.ts";
import { recordChecksum, recordName } from "./record-codec.ts";
import { StoreError } from "./store.ts";

/**
 * What is wrong with the disk, until it is told otherwise:
 * - `full`, `failing`: calls are refused, and nothing is stored.
 * - `lost`, `hidden`: the answer never comes. The call fails with an outcome that its caller cannot
 *   know, and was not stored (`lost`), or was (`hidden`).
 */
export type DiskFault = "full" | "failing" | "lost" | "hidden";

export interface MemoryDiskOptions {
  /**
   * Decides when a flush completes, by calling what it is given; until then nothing is durable.
   * Absent: at once. A flush that is never completed is a disk that hangs.
   */
  readonly flush?: (complete: () => void) => void;
}

export interface CrashOptions {
  /**
   * How much of the write that was under way had reached the disk, from 0 (nothing) to 1 (all of
   * it, though nobody was told). In between it is torn, and recovery finds and drops it.
   */
  readonly tear?: number;
}

/** A disk that outlives the journals that were opened on it, as a disk outlives processes. */
export interface MemoryDisk {
  /** The journal of a new process. One that was open before is abandoned as if it crashed. */
  open(): MemoryJournal;
  /** Power fails: what was not flushed is gone, and calls under way never settle. */
  crash(options?: CrashOptions): void;
  setFault(fault: DiskFault | undefined): void;
  /** Flips a bit of a stored record. */
  corrupt(revision: number): void;
  /** How many records are stored, for tests of compaction. */
  recordCount(): number;
  /** Another disk with what is stored now, as a restored backup is one. */
  copy(): MemoryDisk;
}

export function createMemoryDisk(options: MemoryDiskOptions = {}): MemoryDisk {
  return memoryDisk(new Disk(options.flush ?? ((complete) => complete())));
}

function memoryDisk(disk: Disk): MemoryDisk {
  return {
    open: () => disk.open(),
    crash: ({ tear = 0 } = {}) => disk.crash(tear),
    setFault: (fault) => disk.setFault(fault),
    corrupt: (revision) => disk.corrupt(revision),
    recordCount: () => disk.records.size,
    copy: () => memoryDisk(disk.copy()),
  };
}

/** What one call does to the disk. */
interface Operation {
  readonly put: readonly StoredRecord[];
  readonly remove: readonly number[];
  readonly compactedRevision: number;
}

interface StoredRecord extends JournalRecord {
  readonly checksum: number;
}

class Disk {
  readonly records = new Map<number, StoredRecord>();
  compactedRevision = 0;
  readonly #flush: (complete: () => void) => void;
  #journal: MemoryJournal | undefined;
  #underWay: Operation | undefined;
  /** What a crash left of the operation that was under way, until the next journal recovers it. */
  #tail = new Uint8Array();
  #fault: DiskFault | undefined;

  constructor(flush: (complete: () => void) => void) {
    this.#flush = flush;
  }

  open(): MemoryJournal {
    if (this.#underWay) this.crash(0);
    const survivor = unframe(this.#tail);
    if (survivor) this.#apply(survivor);
    this.#tail = new Uint8Array();
    this.#journal = new MemoryJournal(this);
    return this.#journal;
  }

  crash(tear: number): void {
    assert(tear >= 0 && tear <= 1, "a tear is between nothing and all");
    if (this.#underWay) {
      const frame = frameOf(this.#underWay);
      this.#tail = frame.slice(0, Math.floor(frame.byteLength * tear));
    }
    this.#underWay = undefined;
    this.#journal = undefined;
  }

  setFault(fault: DiskFault | undefined): void {
    this.#fault = fault;
  }

  copy(): Disk {
    const other = new Disk(this.#flush);
    for (const [revision, record] of this.records) other.records.set(revision, record);
    other.compactedRevision = this.compactedRevision;
    return other;
  }

  corrupt(revision: number): void {
    const record = this.records.get(revision);
    assert(record, `revision ${revision} is stored`);
    const value = Uint8Array.from(record.value, (byte, i) => (i === 0 ? byte ^ 1 : byte));
    this.records.set(revision, { ...record, value });
  }

  /** Settles only while the journal that asks is the one of the living process. */
  perform(journal: MemoryJournal, operation: Operation): Promise<void> {
    return new Promise((resolve, reject) => {
      if (journal !== this.#journal) return;
      if (this.#fault === "full") return reject(fullError());
      if (this.#fault === "failing") return reject(failingError());
      assert(!this.#underWay, "calls to a journal never overlap");
      this.#underWay = operation;
      this.#flush(() => {
        if (this.#underWay !== operation) return;
        this.#underWay = undefined;
        this.#complete(operation, resolve, reject);
      });
    });
  }

  #complete(operation: Operation, resolve: () => void, reject: (reason: Error) => void): void {
    const fault = this.#fault;
    if (fault !== "lost") this.#apply(operation);
    if (fault === "lost" || fault === "hidden") reject(new Error("the disk did not answer"));
    else resolve();
  }

  #apply(operation: Operation): void {
    for (const record of operation.put) this.records.set(record.revision, record);
    for (const revision of operation.remove) this.records.delete(revision);
    this.compactedRevision = Math.max(this.compactedRevision, operation.compactedRevision);
  }
}

/** The in-memory twin of the SQLite journal. Made by a disk's `open`. */
export class MemoryJournal implements Journal {
  readonly #disk: Disk;

  constructor(disk: Disk) {
    this.#disk = disk;
  }

  async load(): Promise<JournalContent> {
    const { compactedRevision } = this.#disk;
    const records = [...this.#disk.records.values()].map(checked);
    const revision = Math.max(compactedRevision, records.at(-1)?.revision ?? 0);
    return { revision, compactedRevision, records };
  }

  append(records: readonly JournalRecord[]): Promise<void> {
    const put = records.map((record) => ({ ...record, checksum: recordChecksum(record) }));
    return this.#disk.perform(this, { put, remove: [], compactedRevision: 0 });
  }

  compact(compactedRevision: number, superseded: readonly number[]): Promise<void> {
    return this.#disk.perform(this, { put: [], remove: superseded, compactedRevision });
  }

  async close(): Promise<void> {}
}

/** An operation as bytes behind their checksum, as a write-ahead log would hold it. */
function frameOf(operation: Operation): Uint8Array {
  const payload = serialize(operation);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32LE(crc32(payload));
  return Buffer.concat([checksum, payload]);
}

/** The operation of a frame; undefined if the frame is torn. */
function unframe(frame: Uint8Array): Operation | undefined {
  if (frame.byteLength < 4) return undefined;
  const payload = frame.subarray(4);
  const isWhole = Buffer.from(frame).readUInt32LE() === crc32(payload);
  // cast: the checksum proves that these are the bytes of `frameOf`.
  return isWhole ? (deserialize(payload) as Operation) : undefined;
}

function checked(record: StoredRecord): JournalRecord {
  const { checksum, ...content } = record;
  if (recordChecksum(content) === checksum) return content;
  throw new StoreError("Corrupt", `${recordName(record)} is damaged on the disk`);
}

function fullError(): StoreError {
  return new StoreError("StorageFull", "the disk is full");
}

function failingError(): StoreError {
  return new StoreError("StorageFailed", "the disk refused to write");
}
