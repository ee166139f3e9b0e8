import type { Clock } from "../kernel/clock.ts";

/**
 * One line of log: a sentence and the facts that belong to it. The app passes the function in.
 * Bodies, headers and tokens never go into either part.
 */
export type Log = (
  level: "debug" | "info" | "warn" | "error",
  message: string,
  fields?: Readonly<Record<string, string | number | boolean | undefined>>,
) => void;

/** Peers remembered at once. An attacker with many addresses must not fill the memory. */
const keysMax = 1_024;

/**
 * Says whether something may be logged again for this key: once a minute and key. Whoever knocks a
 * thousand times a second gets one line, and others still get theirs.
 */
export function createLogThrottle(clock: Clock, everyMs = 60_000): (key: string) => boolean {
  const lastMs = new Map<string, number>();
  return (key) => {
    const nowMs = clock.monotonicMs();
    const last = lastMs.get(key);
    if (last !== undefined && nowMs - last < everyMs) return false;
    // Deleting first moves the key to the end, so that the oldest is always the first.
    lastMs.delete(key);
    lastMs.set(key, nowMs);
    if (lastMs.size > keysMax) forgetOldest(lastMs);
    return true;
  };
}

function forgetOldest(lastMs: Map<string, number>): void {
  const oldest = lastMs.keys().next();
  if (!oldest.done) lastMs.delete(oldest.value);
}
