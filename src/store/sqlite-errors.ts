import { StoreError } from "./store.ts";

/** SQLite's primary result codes (https://sqlite.org/rescode.html), the low byte of `errcode`. */
const full = 13;
const busy = 5;
const inputOutput = 10;
const corrupt = 11;
const notADatabase = 26;

/** The result code that node:sqlite puts on its errors; undefined for any other error. */
function resultCode(error: unknown): number | undefined {
  if (!(error instanceof Error) || !("errcode" in error)) return undefined;
  return typeof error.errcode === "number" ? error.errcode & 0xff : undefined;
}

export function isBusy(error: unknown): boolean {
  return resultCode(error) === busy;
}

function isCorruption(error: unknown): boolean {
  const code = resultCode(error);
  return code === corrupt || code === notADatabase;
}

/** The disk is full, busy or broken; the program and the file's content are not to blame. */
export function isDiskRefusal(error: unknown): boolean {
  const code = resultCode(error);
  return code === full || code === busy || code === inputOutput;
}

/**
 * Whether a COMMIT that failed so has certainly stored nothing. A full disk refuses the end of the
 * transaction's last page, and a lock is refused before anything is written. After a failed fsync
 * or an I/O error, however, the transaction may lie complete in the log, and come back at the next
 * start.
 */
export function isCommitRefused(error: unknown): boolean {
  const code = resultCode(error);
  return code === full || code === busy;
}

/** What the store says when SQLite has stored nothing. */
export function nothingStored(error: unknown): StoreError {
  const detail = error instanceof Error ? error.message : String(error);
  return resultCode(error) === full
    ? new StoreError("StorageFull", `the disk is full: ${detail}`, { cause: error })
    : new StoreError("StorageFailed", `the disk refused to write: ${detail}`, { cause: error });
}

/** The error of opening or copying a file, in the store's words where it has some. */
export function fileError(path: string, error: unknown): unknown {
  if (isCorruption(error)) return corruptionError(path, error);
  return isDiskRefusal(error) ? nothingStored(error) : error;
}

export function corruptionError(path: string, cause: unknown): StoreError {
  // SQLite lists what it found line by line; a person reads one sentence.
  const detail = (cause instanceof Error ? cause.message : String(cause)).replaceAll(/\s+/g, " ");
  return new StoreError(
    "Corrupt",
    `${path} is damaged (${detail}): restore a backup with \`berth restore\``,
    { cause },
  );
}
