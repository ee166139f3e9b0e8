import type { DatabaseSync } from "node:sqlite";
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import { assert } from "../kernel/assert.ts";
import type { Journal, JournalContent, JournalRecord } from "./journal.ts";
import { compactedRevisionOf, newestRevisionOf, openDatabase, recordsOf } from "./sqlite-format.ts";
import type { WriterReply, WriterRequest } from "./sqlite-worker.ts";
import type { SqliteWriterOptions } from "./sqlite-writer.ts";
import { StoreError } from "./store.ts";

/** How far the write-ahead log may grow before it is carried over into the file. */
const logBytesMax = 8 * 1024 * 1024;

export interface SqliteJournalOptions extends Pick<SqliteWriterOptions, "busyMs" | "failpoints"> {
  /** The store's file. Its folder exists, and this process holds the folder's lock. */
  readonly path: string;
  readonly logBytesMax?: number;
}

/**
 * Opens, makes, upgrades and checks a store file. Reading at the start is done here, where the
 * records are wanted; writing, which waits for the disk, in a thread of its own.
 */
export async function openSqliteJournal(options: SqliteJournalOptions): Promise<SqliteJournal> {
  // The thread takes its time to start; meanwhile the file is looked at.
  const thread = new WriterThread();
  try {
    const database = openDatabase(options.path);
    thread.open({ logBytesMax, ...options });
    return new SqliteJournal(options.path, database, thread);
  } catch (error) {
    await thread.terminate();
    throw error;
  }
}

/** Made by `openSqliteJournal`. */
export class SqliteJournal implements Journal {
  readonly #path: string;
  readonly #thread: WriterThread;
  #database: DatabaseSync | undefined;

  constructor(path: string, database: DatabaseSync, thread: WriterThread) {
    this.#path = path;
    this.#database = database;
    this.#thread = thread;
  }

  async load(): Promise<JournalContent> {
    const database = this.#database;
    assert(database, "a journal is loaded once, before it is closed");
    return {
      revision: newestRevisionOf(database),
      compactedRevision: compactedRevisionOf(database),
      records: this.#records(database),
    };
  }

  append(records: readonly JournalRecord[]): Promise<void> {
    return this.#thread.ask({ do: "append", records });
  }

  compact(compactedRevision: number, superseded: readonly number[]): Promise<void> {
    return this.#thread.ask({ do: "compact", compactedRevision, superseded });
  }

  async close(): Promise<void> {
    this.#closeDatabase();
    await this.#thread.close();
  }

  /** For tests: the file refuses to grow beyond so many pages, as if the disk were full. */
  async limitPages(pagesMax: number): Promise<void> {
    await this.#thread.ask({ do: "limitPages", pagesMax });
  }

  /** For tests: the process dies. Nothing is closed, and calls under way have no known outcome. */
  async kill(): Promise<void> {
    this.#closeDatabase();
    await this.#thread.terminate();
  }

  *#records(database: DatabaseSync): Generator<JournalRecord> {
    yield* recordsOf(database, this.#path);
    // What was read is in memory now; the connection would only hold on to pages of it.
    this.#closeDatabase();
  }

  #closeDatabase(): void {
    this.#database?.close();
    this.#database = undefined;
  }
}

interface Call {
  readonly resolve: () => void;
  readonly reject: (reason: Error) => void;
}

/** The writing thread. It answers in the order in which it is asked. */
class WriterThread {
  readonly #worker: Worker;
  readonly #calls: Call[] = [];
  #death: Error | undefined;

  constructor() {
    // The same file as TypeScript, and as JavaScript in the package.
    const extension = extname(import.meta.url);
    const file = new URL(`./sqlite-worker${extension}`, import.meta.url);
    // Without the flags of the process, some of which are about its own main file.
    this.#worker = new Worker(file, { execArgv: [] });
    this.#worker.on("message", (reply: WriterReply) => this.#answer(reply));
    this.#worker.on("error", (error) => this.#die(error));
    this.#worker.on("exit", () => this.#die(new Error("the writing thread ended")));
  }

  /** Nobody waits for it: the records are read meanwhile. If it fails, so does the first write. */
  open(options: SqliteWriterOptions): void {
    this.ask({ do: "open", options }).catch((error: unknown) => this.#die(error));
  }

  ask(request: WriterRequest): Promise<void> {
    return new Promise((resolve, reject) => {
      if (this.#death) return reject(this.#death);
      this.#calls.push({ resolve, reject });
      this.#worker.postMessage(request);
    });
  }

  /** Also of a thread that is already dead: then there is nothing left to close. */
  async close(): Promise<void> {
    if (!this.#death) await this.ask({ do: "close" });
    await this.terminate();
  }

  async terminate(): Promise<void> {
    await this.#worker.terminate();
  }

  #answer(reply: WriterReply): void {
    const call = this.#calls.shift();
    if (reply.ok) call?.resolve();
    else call?.reject(new StoreError(reply.code, reply.message));
  }

  /** What was asked and not answered has no known outcome; the errors are not a StoreError's. */
  #die(cause: unknown): void {
    this.#death ??= new Error("the writing thread failed", { cause });
    for (const call of this.#calls.splice(0)) call.reject(this.#death);
  }
}
