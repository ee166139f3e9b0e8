/** What a list showed of a volume or a file when it was decided that it goes. */
export interface SeenFile {
  readonly sizeBytes: number;
  /** Where the storage reports it. */
  readonly createdMs?: number;
}

/** Whether it is the one that was seen, if one was: its name may have been used again. */
export function isAsSeen(seen: SeenFile | undefined, now: SeenFile): boolean {
  if (seen === undefined) return true;
  return seen.sizeBytes === now.sizeBytes && seen.createdMs === now.createdMs;
}
