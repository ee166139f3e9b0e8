import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, normalize, sep } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { type Clock, formatTime } from "../kernel/clock.ts";
import { guard } from "../kernel/guard.ts";
import { type BackedUpFile, copyDatabase, readBackupFiles, syncFile } from "./backup.ts";
import { lockFiles, lockFolder } from "./folder-lock.ts";
import {
  inTransaction,
  newestRevisionOf,
  openDatabase,
  recordsOf,
  syncFolder,
} from "./sqlite-format.ts";
import { type Key, StoreError } from "./store.ts";
import { currentOf, type ReadOptions, type StoreSummary, summaryOf } from "./verify.ts";

/**
 * How far the revision jumps. The server may have gone on after the backup was made, and its
 * clients know revisions from that lost time: beyond all of them, and with everything before
 * declared compacted, they list anew instead of taking new objects for old ones.
 */
const revisionJump = 1_000_000_000;

export interface RestoreOptions extends ReadOptions {
  readonly backup: string;
  /** The data folder: absent or empty, unless forced. */
  readonly folder: string;
  /** The name of the store's file in the folder. */
  readonly databaseName: string;
  /** What is in the folder is moved into a folder inside it, instead of being refused. */
  readonly force: boolean;
  readonly clock: Clock;
}

export interface RestoreSummary extends StoreSummary {
  /** The names of the restored files beside the store. */
  readonly files: readonly string[];
  /** Where the folder's old content is now. */
  readonly movedTo: string | undefined;
}

/**
 * Makes a data folder of a backup. What cannot be decrypted with the key at hand is left out, and
 * named as unreadable. The folder is not touched before the backup has been read to its end.
 * Throws a StoreError, of code Exists if there is something in the folder.
 */
export function restoreBackup(options: RestoreOptions): RestoreSummary {
  const files = readBackupFiles(options.backup);
  for (const file of files) refuseOutside(file);
  const lock = lockFolder(options.folder);
  const staging = join(options.folder, "restoring");
  try {
    const old = contentOf(options.folder);
    const mayReplace = old.length === 0 || options.force;
    if (!guard("restore-into-empty-folder", mayReplace)) throw notEmptyError(options.folder);
    rmSync(staging, { recursive: true, force: true });
    mkdirSync(staging, { mode: 0o700 });
    const summary = stageDatabase(join(staging, options.databaseName), options);
    for (const file of files) stageFile(staging, file);
    const movedTo = moveAside(options, old);
    moveInto(options, staging);
    return { ...summary, files: files.map((file) => file.name), movedTo };
  } finally {
    rmSync(staging, { recursive: true, force: true });
    lock.release();
  }
}

/** Lays down the store with its current objects only: the past before a restore is not readable. */
function stageDatabase(path: string, options: RestoreOptions): StoreSummary {
  copyDatabase(options.backup, path);
  const summary = inDatabase(path, (database) => {
    const unreadable = keepCurrent(database, path, options);
    return { ...summaryOf(database, path, { ...options, sealed: () => false }), unreadable };
  });
  syncFile(path);
  return summary;
}

function inDatabase<T>(path: string, use: (database: DatabaseSync) => T): T {
  const database = openDatabase(path);
  try {
    return use(database);
  } finally {
    database.close();
  }
}

function keepCurrent(database: DatabaseSync, path: string, options: RestoreOptions): Key[] {
  const current = [...currentOf(recordsOf(database, path), options).values()];
  const kept = new Set(
    current.filter((object) => object.isReadable).map(({ revision }) => revision),
  );
  const stored = Array.from(recordsOf(database, path), (record) => record.revision);
  const superseded = stored.filter((revision) => !kept.has(revision));
  const restoredRevision = newestRevisionOf(database) + revisionJump;
  inTransaction(database, () => {
    const remove = database.prepare("DELETE FROM record WHERE revision = ?");
    for (const revision of superseded) remove.run(revision);
    const mark = database.prepare("UPDATE mark SET revision = ? WHERE name = 'compacted'");
    mark.run(restoredRevision);
    database.exec("DROP TABLE backup; DROP TABLE backup_file");
  });
  // What was dropped would otherwise still lie in the file's free pages, keys included.
  database.exec("VACUUM");
  const unreadable = current.filter((object) => !object.isReadable);
  return unreadable.map(({ bucket, id }) => ({ bucket, id }));
}

function stageFile(staging: string, { name, mode, content }: BackedUpFile): void {
  const path = join(staging, name);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  writeFileSync(path, content, { mode: mode & 0o777, flag: "wx", flush: true });
}

function moveAside({ folder, clock }: RestoreOptions, old: readonly string[]): string | undefined {
  if (old.length === 0) return undefined;
  const aside = join(folder, `replaced-${formatTime(clock.nowMs()).replaceAll(":", "-")}`);
  if (existsSync(aside)) throw new StoreError("Exists", `${aside} exists: try again in a second`);
  mkdirSync(aside, { mode: 0o700 });
  for (const name of old) renameSync(join(folder, name), join(aside, name));
  syncFolder(aside);
  return aside;
}

/** The store comes last: a folder without it is not yet a data folder. */
function moveInto({ folder, databaseName }: RestoreOptions, staging: string): void {
  const beside = readdirSync(staging).filter((name) => name !== databaseName);
  for (const name of beside) renameSync(join(staging, name), join(folder, name));
  syncFolder(folder);
  renameSync(join(staging, databaseName), join(folder, databaseName));
  syncFolder(folder);
}

/** What would be overwritten. A mounted disk has a "lost+found" from its first day. */
function contentOf(folder: string): string[] {
  const isNothing = (name: string): boolean =>
    lockFiles.includes(name) || name === "lost+found" || name === "restoring";
  return readdirSync(folder).filter((name) => !isNothing(name) && !name.startsWith("replaced-"));
}

/** A backup is a file that somebody handed over; it must not write anywhere but into the folder. */
function refuseOutside({ name }: BackedUpFile): void {
  const parts = normalize(name).split(sep);
  const isOutside = name === "" || name.startsWith(sep) || parts.includes("..");
  const isPlain = !isOutside && normalize(name) === name && !lockFiles.includes(name);
  if (guard("restore-inside-folder", isPlain)) return;
  throw new StoreError("Corrupt", `the backup holds a file with the name "${name}": not restored`);
}

function notEmptyError(folder: string): StoreError {
  return new StoreError(
    "Exists",
    `${folder} is not empty: choose another folder, or use --force to move its content aside`,
  );
}
