import type { DatabaseSync } from "node:sqlite";
import type { Cipher } from "./cipher.ts";
import type { JournalRecord } from "./journal.ts";
import { openRecord } from "./sealed-journal.ts";
import { formatOf, newestRevisionOf, openForReading, recordsOf } from "./sqlite-format.ts";
import type { Key } from "./store.ts";

/** What a store file or a backup holds. */
export interface StoreSummary {
  /** How many objects, and how large they are together as they are stored. */
  readonly objects: number;
  readonly bytes: number;
  readonly revision: number;
  /** The version of the file's format. */
  readonly format: number;
  /** Objects that are encrypted, and not with the key at hand. Counted among the objects. */
  readonly unreadable: readonly Key[];
}

/** How to read what is encrypted. Without a cipher everything sealed is unreadable. */
export interface ReadOptions {
  readonly sealed: (bucket: string) => boolean;
  readonly cipher: Cipher | undefined;
}

/**
 * Reads all of a store file or backup and checks it: structure, checksums and, where a key is at
 * hand, the encryption. Throws a StoreError if it is damaged, too new, or not there. It may be the
 * file of a running server.
 */
export function verifyStore(path: string, options: ReadOptions): StoreSummary {
  const database = openForReading(path);
  try {
    return summaryOf(database, path, options);
  } finally {
    database.close();
  }
}

export function summaryOf(
  database: DatabaseSync,
  path: string,
  options: ReadOptions,
): StoreSummary {
  const objects = [...currentOf(recordsOf(database, path), options).values()];
  return {
    objects: objects.length,
    bytes: objects.reduce((total, object) => total + object.bytes, 0),
    revision: newestRevisionOf(database),
    format: formatOf(database),
    unreadable: objects
      .filter((object) => !object.isReadable)
      .map(({ bucket, id }) => ({ bucket, id })),
  };
}

/** An object as the log ends with it, without its value. */
export interface CurrentObject extends Key {
  readonly revision: number;
  readonly bytes: number;
  readonly isReadable: boolean;
}

/** What is left of a log when all of it has happened. The values are not kept in memory. */
export function currentOf(
  records: Iterable<JournalRecord>,
  options: ReadOptions,
): Map<string, CurrentObject> {
  const current = new Map<string, CurrentObject>();
  for (const record of records) {
    const { bucket, id, revision } = record;
    const name = `${bucket}\0${id}`;
    if (record.type === "delete") current.delete(name);
    else {
      const isReadable = openRecord(record, options) !== undefined;
      current.set(name, { bucket, id, revision, bytes: record.value.byteLength, isReadable });
    }
  }
  return current;
}
