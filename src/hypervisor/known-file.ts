import { formatTime } from "../kernel/clock.ts";

/** What tells a file from another one that somebody put under its name, as far as it is known. */
export interface KnownFile {
  /** In bytes. */
  readonly size?: string | undefined;
  readonly createdAt?: string | undefined;
}

/** A file as the list of a storage shows it. */
interface ListedFile {
  readonly sizeBytes: number;
  readonly createdMs?: number;
}

/** What is known of a file that is listed now. */
export function knownFileOf({ sizeBytes, createdMs }: ListedFile): KnownFile {
  const size = String(sizeBytes);
  return createdMs === undefined ? { size } : { size, createdAt: formatTime(createdMs) };
}

/**
 * Whether a file that is there may be the one that was known under its name. Both come from the
 * list of the same storage, so sizes and times mean the same. What is not known proves nothing.
 */
export function isSameFile(known: KnownFile, there: KnownFile): boolean {
  const isSameSize = known.size === undefined || known.size === there.size;
  const hasTimes = known.createdAt !== undefined && there.createdAt !== undefined;
  return isSameSize && (!hasTimes || Date.parse(known.createdAt) === Date.parse(there.createdAt));
}

/** How a file differs from the one that was known, for people. */
export function fileDifference(known: KnownFile, there: KnownFile): string {
  const told = ({ size = "?", createdAt }: KnownFile): string => {
    return `${size} bytes${createdAt === undefined ? "" : ` from ${createdAt}`}`;
  };
  return `it has ${told(there)}, and Berth verified one of ${told(known)}`;
}
