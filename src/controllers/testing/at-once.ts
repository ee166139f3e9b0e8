/** A stretch of time, in milliseconds of one clock. */
interface Stretch {
  readonly startMs: number;
  readonly endMs?: number | undefined;
}

/** How many of them there were at the same time, at most. One that has no end goes on. */
export function mostAtOnce(stretches: readonly Stretch[]): number {
  const edges = stretches.flatMap(({ startMs, endMs = Infinity }) => [
    { atMs: startMs, by: 1 },
    { atMs: endMs, by: -1 },
  ]);
  let now = 0;
  let most = 0;
  // What ends in the millisecond in which another begins was over before.
  for (const { by } of edges.toSorted((a, b) => a.atMs - b.atMs || a.by - b.by)) {
    now += by;
    most = Math.max(most, now);
  }
  return most;
}
