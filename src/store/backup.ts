import {
  closeSync,
  existsSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { crc32 } from "node:zlib";
import type { Clock } from "../kernel/clock.ts";
import { guard } from "../kernel/guard.ts";
import { corruptionError, fileError } from "./sqlite-errors.ts";
import { inTransaction, openDatabase, openForReading, syncFolder } from "./sqlite-format.ts";
import { StoreError } from "./store.ts";
import { type StoreSummary, verifyStore } from "./verify.ts";

/** A small file that a data folder needs beside its store, such as the CA's certificate. */
export interface BackupSource {
  /** Its place in the data folder: "tls/ca.crt". */
  readonly name: string;
  readonly path: string;
  readonly mode: number;
  /** Left out unless the backup is made with the key: the encryption key, the CA's private key. */
  readonly isKey: boolean;
}

export interface BackupOptions {
  /** The store's file. Its server may be running. */
  readonly database: string;
  /** The one file to write. */
  readonly target: string;
  readonly files: readonly BackupSource[];
  readonly withKey: boolean;
  /** Overwrite the target. */
  readonly force: boolean;
  readonly clock: Clock;
}

export interface BackupSummary extends Omit<StoreSummary, "unreadable"> {
  /** The names of the files beside the store. */
  readonly files: readonly string[];
}

/** A file as a backup holds it. */
export interface BackedUpFile {
  readonly name: string;
  readonly mode: number;
  readonly content: Uint8Array;
}

/** What the small files of a data folder are at most. Larger is not one of them. */
const fileBytesMax = 1024 * 1024;

const createTables = `
  CREATE TABLE backup (created_ms INTEGER NOT NULL, with_key INTEGER NOT NULL) STRICT;
  CREATE TABLE backup_file (
    name TEXT PRIMARY KEY,
    mode INTEGER NOT NULL,
    content BLOB NOT NULL,
    checksum INTEGER NOT NULL
  ) STRICT;
`;

/**
 * Copies a store, as of one moment, and the files beside it into one file: an SQLite file like the
 * store's own, with encrypted values still encrypted. It has its name only once it is complete and
 * was read back. Works on the files of a running server, from another process.
 */
export function createBackup(options: BackupOptions): BackupSummary {
  const { database, target, force } = options;
  if (!guard("backup-target-free", force || !existsSync(target))) {
    throw new StoreError("Exists", `${target} exists: choose another name, or use --force`);
  }
  const partial = `${target}.${process.pid}.partial`;
  try {
    copyDatabase(database, partial);
    completeBackup(partial, options);
    const summary = verifyBackup(partial);
    renameSync(partial, target);
    syncFolder(dirname(target));
    return summary;
  } finally {
    rmSync(partial, { force: true });
  }
}

/** The files that a backup holds beside the store. Throws a StoreError if it is damaged. */
export function readBackupFiles(backup: string): BackedUpFile[] {
  const database = openForReading(backup);
  try {
    return filesOf(database, backup);
  } finally {
    database.close();
  }
}

/** A copy of one moment, in a file of its own that only its owner may read. */
export function copyDatabase(from: string, to: string): void {
  const source = openForReading(from);
  try {
    rmSync(to, { force: true });
    closeSync(openSync(to, "wx", 0o600));
    source.prepare("VACUUM INTO ?").run(to);
  } catch (error) {
    throw fileError(from, error);
  } finally {
    source.close();
  }
}

/** Makes the bytes of a closed file durable. */
export function syncFile(path: string): void {
  const file = openSync(path, "r");
  fsyncSync(file);
  closeSync(file);
}

function completeBackup(path: string, options: BackupOptions): void {
  const files = options.files
    .filter((file) => guard("backup-without-key", options.withKey || !file.isKey))
    .map(readSource);
  const database = openDatabase(path);
  try {
    // One file, which can be read where nothing can be written.
    database.exec("PRAGMA journal_mode = DELETE");
    inTransaction(database, () => {
      database.exec(createTables);
      const about = database.prepare("INSERT INTO backup VALUES (?, ?)");
      about.run(options.clock.nowMs(), options.withKey ? 1 : 0);
      const insert = database.prepare("INSERT INTO backup_file VALUES (?, ?, ?, ?)");
      for (const { name, mode, content } of files) insert.run(name, mode, content, crc32(content));
    });
  } finally {
    database.close();
  }
  syncFile(path);
}

function readSource({ name, path, mode }: BackupSource): BackedUpFile {
  const content = readFileSync(path);
  if (content.byteLength <= fileBytesMax) return { name, mode, content };
  throw new StoreError("StorageFailed", `${path} is too large to be part of a backup`);
}

function verifyBackup(path: string): BackupSummary {
  const files = readBackupFiles(path).map((file) => file.name);
  const { unreadable: _, ...summary } = verifyStore(path, {
    sealed: () => false,
    cipher: undefined,
  });
  return { ...summary, files };
}

function filesOf(database: DatabaseSync, path: string): BackedUpFile[] {
  const tables = database.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'backup_file'");
  if (!tables.get()) throw new StoreError("Missing", `${path} is not a backup`);
  const rows = database.prepare("SELECT name, mode, content, checksum FROM backup_file").all();
  return rows.map(({ name, mode, content, checksum }) => {
    if (typeof name !== "string" || typeof mode !== "number") throw damaged(path, name);
    if (!(content instanceof Uint8Array)) throw damaged(path, name);
    if (!guard("backup-file-checksum", crc32(content) === checksum)) throw damaged(path, name);
    return { name, mode, content };
  });
}

function damaged(path: string, name: unknown): StoreError {
  return corruptionError(path, new Error(`its file ${String(name)} is damaged`));
}
