import { closeSync, existsSync, fsyncSync, openSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync, type SQLOutputValue } from "node:sqlite";
import { assert } from "../kernel/assert.ts";
import type { JournalRecord } from "./journal.ts";
import { recordChecksum, recordName } from "./record-codec.ts";
import { corruptionError, fileError } from "./sqlite-errors.ts";
import { StoreError } from "./store.ts";

/** "BRTH": tells our files from other people's SQLite files. */
const applicationId = 0x42525448;

/** How long a connection waits for another one's lock. A backup holds it for moments only. */
const busyMs = 5_000;

const createTables = `
  CREATE TABLE record (
    revision INTEGER PRIMARY KEY,
    type TEXT NOT NULL,
    bucket TEXT NOT NULL,
    id TEXT NOT NULL,
    value BLOB NOT NULL,
    checksum INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE mark (name TEXT PRIMARY KEY, revision INTEGER NOT NULL) STRICT;
  INSERT INTO mark VALUES ('compacted', 0);
`;

/** What turns a format into the next one: the entry at index 0 makes format 2 of format 1. */
const migrations: readonly ((database: DatabaseSync) => void)[] = [addChecksums];

/** The format that this build writes. Older ones are upgraded, newer ones are refused. */
const formatVersion = migrations.length + 1;

/**
 * Opens a store file, makes it if it is not there, upgrades it if it is old, and looks whether
 * its structure is sound. The records' checksums are looked at as they are read.
 */
export function openDatabase(path: string): DatabaseSync {
  if (!existsSync(path)) createFile(path);
  return opened(path, {}, (database) => {
    database.exec("PRAGMA synchronous = FULL");
    prepare(database, path);
  });
}

/** Opens a store file or a backup without changing it, and looks whether its structure is sound. */
export function openForReading(path: string): DatabaseSync {
  if (!existsSync(path)) throw new StoreError("Missing", `there is no file ${path}`);
  return opened(path, { readOnly: true }, (database) => {
    refuseForeign(database, path);
    refuseUnsound(database, path);
  });
}

/** A bare connection for writing, to a file that `openDatabase` has seen in this process. */
export function connect(path: string): DatabaseSync {
  return opened(path, {}, (database) => database.exec("PRAGMA synchronous = FULL"));
}

/** The format of a store file, and the one that this build writes. The file may be in use. */
export function storeFormat(path: string): { readonly format: number; readonly newest: number } {
  const database = opened(path, { readOnly: true }, () => undefined);
  try {
    return { format: formatOf(database), newest: formatVersion };
  } finally {
    database.close();
  }
}

export function compactedRevisionOf(database: DatabaseSync): number {
  return numberFrom(database, "SELECT revision FROM mark WHERE name = 'compacted'");
}

export function formatOf(database: DatabaseSync): number {
  return numberFrom(database, "PRAGMA user_version");
}

/** The newest revision ever stored: compaction may have removed its record, but left the mark. */
export function newestRevisionOf(database: DatabaseSync): number {
  const newest = numberFrom(database, "SELECT coalesce(max(revision), 0) FROM record");
  return Math.max(newest, compactedRevisionOf(database));
}

/** Every record in the order of revisions, each checked against its checksum. */
export function* recordsOf(database: DatabaseSync, path: string): Generator<JournalRecord> {
  const checksum = formatOf(database) < 2 ? "NULL" : "checksum";
  const statement = database.prepare(
    `SELECT revision, type, bucket, id, value, ${checksum} FROM record ORDER BY revision`,
  );
  statement.setReturnArrays(true);
  try {
    for (const row of statement.iterate()) yield recordFrom(Object.values(row), path);
  } catch (error) {
    throw fileError(path, error);
  }
}

function opened(
  path: string,
  options: { readonly readOnly?: boolean },
  prepareIt: (database: DatabaseSync) => void,
): DatabaseSync {
  const database = new DatabaseSync(path, { ...options, timeout: busyMs });
  try {
    prepareIt(database);
    return database;
  } catch (error) {
    database.close();
    throw fileError(path, error);
  }
}

/** SQLite would make it readable for everybody; its log files take over the mode of the file. */
function createFile(path: string): void {
  closeSync(openSync(path, "a", 0o600));
  syncFolder(dirname(path));
}

/** A file's name is durable only when its folder is. */
export function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  fsyncSync(folder);
  closeSync(folder);
}

function prepare(database: DatabaseSync, path: string): void {
  const isNew = numberFrom(database, "PRAGMA page_count") === 0;
  if (!isNew) refuseForeign(database, path);
  database.exec("PRAGMA journal_mode = WAL");
  if (isNew) inTransaction(database, () => create(database));
  else upgrade(database);
  refuseUnsound(database, path);
}

function refuseUnsound(database: DatabaseSync, path: string): void {
  const [verdict] = Object.values(database.prepare("PRAGMA quick_check(1)").get() ?? {});
  if (verdict !== "ok") throw corruptionError(path, new Error(String(verdict)));
}

function refuseForeign(database: DatabaseSync, path: string): void {
  if (numberFrom(database, "PRAGMA application_id") !== applicationId) {
    throw new StoreError("Corrupt", `${path} is not a store of Berth`);
  }
  const version = formatOf(database);
  if (version <= formatVersion) return;
  throw new StoreError(
    "TooNew",
    `${path} was written by a newer Berth (format ${version}, this one knows ${formatVersion}): ` +
      "start that one, or restore a backup from before",
  );
}

function create(database: DatabaseSync): void {
  database.exec(createTables);
  database.exec(`PRAGMA application_id = ${applicationId}`);
  database.exec(`PRAGMA user_version = ${formatVersion}`);
}

function upgrade(database: DatabaseSync): void {
  const version = formatOf(database);
  assert(version >= 1, "the first format was 1");
  if (version === formatVersion) return;
  inTransaction(database, () => {
    for (const migrate of migrations.slice(version - 1)) migrate(database);
    database.exec(`PRAGMA user_version = ${formatVersion}`);
  });
}

function addChecksums(database: DatabaseSync): void {
  database.exec("ALTER TABLE record ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0");
  const update = database.prepare("UPDATE record SET checksum = ? WHERE revision = ?");
  const select = database.prepare("SELECT revision, type, bucket, id, value FROM record");
  for (const row of select.all()) {
    const record = parseRecord(Object.values(row));
    assert(record, "a record of format 1 has its five columns");
    update.run(recordChecksum(record), record.revision);
  }
}

export function inTransaction(database: DatabaseSync, body: () => void): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    body();
    database.exec("COMMIT");
  } catch (error) {
    if (database.isTransaction) database.exec("ROLLBACK");
    throw error;
  }
}

function recordFrom(row: SQLOutputValue[], path: string): JournalRecord {
  const record = parseRecord(row);
  // Format 1 had no checksums.
  if (record && (row[5] === null || recordChecksum(record) === row[5])) return record;
  const name = record ? recordName(record) : `revision ${String(row[0])}`;
  throw corruptionError(path, new Error(`${name} is damaged`));
}

function parseRecord(row: SQLOutputValue[]): JournalRecord | undefined {
  const [revision, type, bucket, id, value] = row;
  if (typeof revision !== "number" || typeof bucket !== "string" || typeof id !== "string") {
    return undefined;
  }
  if ((type !== "put" && type !== "delete") || !(value instanceof Uint8Array)) return undefined;
  return { revision, type, bucket, id, value };
}

function numberFrom(database: DatabaseSync, query: string): number {
  const [value] = Object.values(database.prepare(query).get() ?? {});
  assert(typeof value === "number", `a number comes from: ${query}`);
  return value;
}
