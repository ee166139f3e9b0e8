import { closeSync, fsyncSync, openSync, readFileSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";

/** The content of a small file, or undefined if there is none. Other failures are thrown. */
export function readIfPresent(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (errorCode(error) === "ENOENT") return undefined;
    throw error;
  }
}

/**
 * Replaces a file in one step, durably, readable by its owner alone. A crash leaves either the old
 * content or the new, never half a key.
 */
export function writePrivately(path: string, content: string): void {
  const temporary = `${path}.new`;
  const file = openSync(temporary, "w", 0o600);
  try {
    writeSync(file, content);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
  renameSync(temporary, path);
  syncFolder(dirname(path));
}

/** Makes a rename durable: on Linux a new name is on the disk only once its folder is. */
function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** Node's error code ("ENOENT"), or undefined for what is no system error. */
export function errorCode(error: unknown): string | undefined {
  if (!(error instanceof Error) || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
