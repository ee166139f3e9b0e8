import { assert } from "../kernel/assert.ts";
import type { Random } from "../kernel/random.ts";

/** How often and when something that failed is tried again. Plain data: tables are made of it. */
export interface RetryPolicy {
  /** The wait after the first failure, the second and so on; the last is for all that follow. */
  readonly delaysMs: readonly number[];
  /** How far a wait may be off to either side, as a part of it: 0.2 is ±20 %. */
  readonly jitter: number;
  /** The failure after which nothing more is tried; Infinity: for ever. */
  readonly attemptsMax: number;
}

/** What comes after a failure. A stall ends when the declaration or the world changes. */
export type NextAttempt =
  | { readonly type: "retry"; readonly afterMs: number }
  | { readonly type: "stall" };

const secondMs = 1_000;
const minuteMs = 60 * secondMs;

/** For what passes by itself: 30 s, 1, 2, 5, then every 10 minutes, for ever. */
export const transientPolicy: RetryPolicy = {
  delaysMs: [30 * secondMs, minuteMs, 2 * minuteMs, 5 * minuteMs, 10 * minuteMs],
  jitter: 0.2,
  attemptsMax: Infinity,
};

/**
 * For a write that lost to another: nothing is wrong, only our copy is old, and the newer one is
 * about to arrive. It slows down all the same, because two writers may contradict each other.
 */
export const conflictPolicy: RetryPolicy = {
  delaysMs: [20, 50, 100, 200, 500, secondMs],
  jitter: 0.2,
  attemptsMax: Infinity,
};

/** What to do after so many failures, this one included. Pure but for the number it draws. */
export function nextAttempt(policy: RetryPolicy, attempts: number, random: Random): NextAttempt {
  assert(attempts >= 1, "there was a failure");
  const delayMs = policy.delaysMs[Math.min(attempts, policy.delaysMs.length) - 1];
  if (attempts >= policy.attemptsMax || delayMs === undefined) return { type: "stall" };
  return { type: "retry", afterMs: jittered(delayMs, policy.jitter, random) };
}

/** A time, off by at most that part of it to either side. */
export function jittered(timeMs: number, jitter: number, random: Random): number {
  return Math.round(timeMs * (1 + jitter * (2 * random.number() - 1)));
}
