import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { FailpointName, FailpointSettings } from "../kernel/failpoints.ts";
import type { JournalRecord } from "./journal.ts";
import { recordChecksum } from "./record-codec.ts";
import { isCommitRefused, isDiskRefusal, nothingStored } from "./sqlite-errors.ts";
import { connect } from "./sqlite-format.ts";

export interface SqliteWriterOptions {
  readonly path: string;
  /** The log is carried over into the file when it has grown so far. */
  readonly logBytesMax: number;
  /** For tests: how long to wait for another process's lock. */
  readonly busyMs?: number;
  /** For tests: where the thread is to die. */
  readonly failpoints?: FailpointSettings;
}

/**
 * Writes records, synchronously: it lives in a thread of its own. Throws a StoreError if nothing
 * was stored, and anything else if that is not known.
 */
export class SqliteWriter {
  readonly #options: SqliteWriterOptions;
  readonly #visit: (failpoint: FailpointName) => void;
  readonly #database: DatabaseSync;
  readonly #insert: StatementSync;
  readonly #remove: StatementSync;
  readonly #mark: StatementSync;
  #logBytes = 0;

  constructor(
    options: SqliteWriterOptions,
    visit: (failpoint: FailpointName) => void = () => undefined,
  ) {
    this.#options = options;
    this.#visit = visit;
    const database = connect(options.path);
    // Checkpoints come between the writes, not inside them: no answer waits for one.
    database.exec("PRAGMA wal_autocheckpoint = 0");
    database.exec(`PRAGMA journal_size_limit = ${options.logBytesMax}`);
    if (options.busyMs !== undefined) database.exec(`PRAGMA busy_timeout = ${options.busyMs}`);
    this.#database = database;
    this.#insert = database.prepare("INSERT INTO record VALUES (?, ?, ?, ?, ?, ?)");
    this.#remove = database.prepare("DELETE FROM record WHERE revision = ?");
    this.#mark = database.prepare(
      "UPDATE mark SET revision = max(revision, ?) WHERE name = 'compacted'",
    );
  }

  append(records: readonly JournalRecord[]): void {
    this.#transaction(() => {
      for (const record of records) {
        const { revision, type, bucket, id, value } = record;
        this.#insert.run(revision, type, bucket, id, value, recordChecksum(record));
        this.#logBytes += value.byteLength + pageBytes;
      }
    });
  }

  compact(compactedRevision: number, superseded: readonly number[]): void {
    this.#transaction(() => {
      for (const revision of superseded) this.#remove.run(revision);
      this.#mark.run(compactedRevision);
      this.#logBytes += superseded.length * pageBytes;
    });
  }

  /** For tests: the file refuses to grow beyond so many pages, as if the disk were full. */
  limitPages(pagesMax: number): void {
    this.#database.exec(`PRAGMA max_page_count = ${pagesMax}`);
  }

  /** Keeps the log short. Called after a write was answered. */
  checkpointIfDue(): void {
    if (this.#logBytes < this.#options.logBytesMax) return;
    this.#logBytes = 0;
    this.#checkpoint("PASSIVE");
  }

  close(): void {
    this.#checkpoint("TRUNCATE");
    this.#database.close();
  }

  #checkpoint(mode: "PASSIVE" | "TRUNCATE"): void {
    this.#visit("before-checkpoint");
    try {
      this.#database.exec(`PRAGMA wal_checkpoint(${mode})`);
    } catch (error) {
      // A reader such as a backup may hold part of the log back, and a failing disk all of it.
      // Nothing is lost by that: the log has it, and the next checkpoint carries it over.
      if (!isDiskRefusal(error)) throw error;
    }
    this.#visit("after-checkpoint");
  }

  #transaction(body: () => void): void {
    try {
      this.#database.exec("BEGIN IMMEDIATE");
      body();
      this.#visit("before-flush");
    } catch (error) {
      this.#rollBack();
      throw nothingStored(error);
    }
    try {
      this.#database.exec("COMMIT");
    } catch (error) {
      if (!isCommitRefused(error)) throw error;
      this.#rollBack();
      throw nothingStored(error);
    }
    this.#visit("after-flush");
  }

  #rollBack(): void {
    // SQLite itself has rolled back after some errors.
    if (this.#database.isTransaction) this.#database.exec("ROLLBACK");
  }
}

/** What a record costs in the log beside its value: about the rest of its page. */
const pageBytes = 4_096;
