import type { Cipher } from "./cipher.ts";
import type { Journal, JournalRecord } from "./journal.ts";
import { recordName } from "./record-codec.ts";
import { StoreError } from "./store.ts";

export interface SealOptions {
  readonly cipher: Cipher;
  /** Which kinds are encrypted on the disk. */
  readonly sealed: (bucket: string) => boolean;
}

/**
 * A journal whose values of some buckets are encrypted before they reach the one underneath. The
 * ciphertext is bound to its bucket, id and revision: moved elsewhere, it does not open.
 */
export function sealJournal(journal: Journal, options: SealOptions): Journal {
  return {
    load: async () => {
      const content = await journal.load();
      return { ...content, records: openRecords(content.records, options) };
    },
    append: (records) => journal.append(records.map((record) => sealRecord(record, options))),
    compact: (compactedRevision, superseded) => journal.compact(compactedRevision, superseded),
    close: () => journal.close(),
  };
}

/** The record in clear. Undefined if its bucket is sealed and the cipher cannot open it. */
export function openRecord(
  record: JournalRecord,
  options: Pick<SealOptions, "sealed"> & { readonly cipher: Cipher | undefined },
): JournalRecord | undefined {
  if (!options.sealed(record.bucket)) return record;
  const value = options.cipher?.open(record.value, placeOf(record));
  return value && { ...record, value };
}

function* openRecords(
  records: Iterable<JournalRecord>,
  options: SealOptions,
): Generator<JournalRecord> {
  for (const record of records) {
    const opened = openRecord(record, options);
    if (!opened) throw unreadableError(record);
    yield opened;
  }
}

function sealRecord(record: JournalRecord, { cipher, sealed }: SealOptions): JournalRecord {
  if (!sealed(record.bucket)) return record;
  return { ...record, value: cipher.seal(record.value, placeOf(record)) };
}

function placeOf({ bucket, id, revision, type }: JournalRecord): string {
  return JSON.stringify([bucket, id, revision, type]);
}

function unreadableError(record: JournalRecord): StoreError {
  return new StoreError(
    "Unreadable",
    `${recordName(record)} cannot be decrypted with the key at hand: bring back the key with ` +
      "which it was written, or restore a backup",
  );
}
