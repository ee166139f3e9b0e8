/** A stretch of time, in milliseconds of one clock. */
export interface Interval {
  readonly beginMs: number;
  readonly endMs: number;
}

/** How much of a stretch is covered by at least one of the others. */
export function coveredMs(within: Interval, intervals: readonly Interval[]): number {
  const sorted = intervals.toSorted((left, right) => left.beginMs - right.beginMs);
  let coveredUntilMs = within.beginMs;
  let totalMs = 0;
  for (const { beginMs, endMs } of sorted) {
    const fromMs = Math.max(beginMs, coveredUntilMs);
    const untilMs = Math.min(endMs, within.endMs);
    if (untilMs <= fromMs) continue;
    totalMs += untilMs - fromMs;
    coveredUntilMs = untilMs;
  }
  return totalMs;
}
