import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { isBusy } from "./sqlite-errors.ts";
import { StoreError } from "./store.ts";

/** The files of a lock. They are no part of the data, and may stay behind. */
export const lockFiles: readonly string[] = ["lock", "lock.pid"];

export interface FolderLock {
  release(): void;
}

/**
 * Every database that holds a lock, until it is released. Garbage collection closes a database
 * that nothing refers to, and the lock would go with it although its process is alive.
 */
const heldDatabases = new Set<DatabaseSync>();

/**
 * Keeps every other process away from a data folder, which is made if need be, until `release` or
 * the end of this process, however it ends. Throws a StoreError with the code Locked if another
 * process, or this one, has it.
 *
 * Node has no file locks of its own, but SQLite has on every system: the lock is an exclusive
 * transaction on a file that stays empty, and the operating system ends it with its process.
 */
export function lockFolder(folder: string): FolderLock {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  const pidFile = join(folder, "lock.pid");
  const database = new DatabaseSync(join(folder, "lock"), { timeout: 0 });
  try {
    database.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    database.close();
    throw isBusy(error) ? lockedError(folder, pidFile) : error;
  }
  // The number is for people only. It is a file of its own: whoever opens and closes the locked
  // file by other means than SQLite's drops the lock of its process with that (POSIX).
  writeFileSync(pidFile, `${process.pid}\n`, { mode: 0o600 });
  heldDatabases.add(database);
  return {
    release: () => {
      if (!heldDatabases.delete(database)) return;
      rmSync(pidFile, { force: true });
      database.close();
    },
  };
}

function lockedError(folder: string, pidFile: string): StoreError {
  const pid = readPid(pidFile);
  const who = pid === undefined ? "another process" : `another process (pid ${pid})`;
  return new StoreError("Locked", `${folder} is in use by ${who}: stop it first`);
}

/** The holder writes it right after locking, so that for a moment it may be missing or old. */
function readPid(pidFile: string): number | undefined {
  try {
    const pid = Number.parseInt(readFileSync(pidFile, "utf8"), 10);
    return Number.isSafeInteger(pid) ? pid : undefined;
  } catch {
    return undefined;
  }
}
