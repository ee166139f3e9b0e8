import { readIfPresent } from "./files.ts";

/** How long a skew is believed before the file is read again. */
const freshMs = 20;

/**
 * How wrong the wall clock is made, for tests that let it jump: as many milliseconds as the file
 * says at the moment. Without a file it is right, and nothing is ever read.
 */
export function clockSkew(path: string | undefined, monotonicMs: () => number): () => number {
  if (path === undefined) return () => 0;
  let readAtMs = Number.NEGATIVE_INFINITY;
  let skewMs = 0;
  return () => {
    if (monotonicMs() - readAtMs < freshMs) return skewMs;
    readAtMs = monotonicMs();
    const said = Number(readIfPresent(path)?.trim() ?? 0);
    skewMs = Number.isSafeInteger(said) ? said : skewMs;
    return skewMs;
  };
}
