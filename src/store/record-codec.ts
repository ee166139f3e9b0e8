import { crc32 } from "node:zlib";
import type { JournalRecord } from "./journal.ts";

/**
 * The checksum over everything that a record says. The strings are framed by JSON, so that no two
 * different records have the same input.
 */
export function recordChecksum(record: JournalRecord): number {
  const head = JSON.stringify([record.revision, record.type, record.bucket, record.id]);
  return crc32(record.value, crc32(head));
}

/** How a message names what a record holds: "core/secrets default/token (revision 7)". */
export function recordName(record: Pick<JournalRecord, "bucket" | "id" | "revision">): string {
  return `${record.bucket} ${record.id} (revision ${record.revision})`;
}
