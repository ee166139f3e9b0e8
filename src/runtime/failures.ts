import type { Clock } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";
import { ApiError } from "../kernel/status.ts";
import { conflictPolicy, nextAttempt, transientPolicy, type RetryPolicy } from "./backoff.ts";

/** What kind of failure an error is, and what follows from it. */
export interface Failure {
  /** One of few words: it is a label of metrics. */
  readonly category: string;
  /** Failures that are equal here are the same one again, and are counted. Absent: the category. */
  readonly sameAs?: string;
  readonly policy: RetryPolicy;
  /** Nothing is wrong and nobody need hear of it: an old copy, a lost race. */
  readonly isQuiet?: boolean;
}

/** A failure as people are told of it. */
export interface FailureReport {
  readonly key: string;
  readonly error: unknown;
  readonly failure: Failure;
  /** How often this failure happened since the key was last settled or edited, now included. */
  readonly attempts: number;
  readonly next: NextStep;
}

export type NextStep =
  | { readonly type: "retry"; readonly afterMs: number; readonly atMs: number }
  | { readonly type: "stall" };

/** Failures of one key that are told apart. With more, the oldest starts again from one. */
const sortsMax = 8;

/** What an error is where the controller does not know better. */
export function defaultFailure(error: unknown): Failure {
  if (error instanceof ApiError && error.code === 409) {
    return { category: "Conflict", policy: conflictPolicy, isQuiet: true };
  }
  return { category: "Error", policy: transientPolicy };
}

/**
 * Counts the failures of each key. Different failures are counted apart, so that one in between
 * does not make a creation that always fails look like a new one. It remembers only keys that
 * fail, and forgets them when they succeed.
 */
export class FailureBook {
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #attempts = new Map<string, Map<string, number>>();
  /** Keys that must not be tried again just because a resync comes by. */
  readonly #resting = new Set<string>();

  constructor({ clock, random }: { readonly clock: Clock; readonly random: Random }) {
    this.#clock = clock;
    this.#random = random;
  }

  record(key: string, error: unknown, failure: Failure): FailureReport {
    const sort = failure.sameAs ?? failure.category;
    const counts = this.#attempts.get(key) ?? new Map<string, number>();
    const attempts = (counts.get(sort) ?? 0) + 1;
    // Put at the end: the first is the one that has not been seen for longest.
    counts.delete(sort);
    counts.set(sort, attempts);
    const [oldest] = counts.keys();
    if (counts.size > sortsMax && oldest !== undefined) counts.delete(oldest);
    this.#attempts.set(key, counts);
    this.#resting.add(key);
    const next = nextAttempt(failure.policy, attempts, this.#random);
    if (next.type === "stall") return { key, error, failure, attempts, next };
    const atMs = this.#clock.nowMs() + next.afterMs;
    return { key, error, failure, attempts, next: { ...next, atMs } };
  }

  /** Whether the key waits for its next attempt, or has none. */
  isResting(key: string): boolean {
    return this.#resting.has(key);
  }

  /** The key runs: whatever it was resting from, it no longer does. */
  wake(key: string): void {
    this.#resting.delete(key);
  }

  /** All is well, or the declaration is another: count from the beginning. */
  clear(key: string): void {
    this.#attempts.delete(key);
    this.#resting.delete(key);
  }

  /** How many keys failed and have not settled since. */
  get size(): number {
    return this.#attempts.size;
  }
}
