import type { Cancel, Clock } from "../clock.ts";

/**
 * Time that passes only when it is told to. Tests and the simulation run on it; callbacks run in
 * the order of their times, and those of the same time in the order in which they were set.
 */
export class VirtualClock implements Clock {
  readonly #startMs: number;
  #elapsedMs = 0;
  readonly #timers = new Set<Timer>();

  constructor(startMs = Date.UTC(2026, 0, 2, 3, 4, 5)) {
    this.#startMs = startMs;
  }

  nowMs(): number {
    return this.#startMs + this.#elapsedMs;
  }

  monotonicMs(): number {
    return this.#elapsedMs;
  }

  after(delayMs: number, callback: () => void): Cancel {
    const timer: Timer = { atMs: this.#elapsedMs + Math.max(0, delayMs), callback };
    this.#timers.add(timer);
    return () => void this.#timers.delete(timer);
  }

  /** How many callbacks are still to come: whatever was stopped must leave none. */
  get timers(): number {
    return this.#timers.size;
  }

  /** When the next callback comes, in milliseconds from now; undefined if none does. */
  nextInMs(): number | undefined {
    const next = this.#next();
    return next && next.atMs - this.#elapsedMs;
  }

  /** Lets time pass. Callbacks that set further ones within that time are waited for too. */
  advance(ms: number): void {
    const endMs = this.#elapsedMs + ms;
    for (let next = this.#next(); next && next.atMs <= endMs; next = this.#next()) {
      this.#elapsedMs = next.atMs;
      this.#timers.delete(next);
      next.callback();
    }
    this.#elapsedMs = endMs;
  }

  #next(): Timer | undefined {
    let first: Timer | undefined;
    for (const timer of this.#timers) {
      if (first === undefined || timer.atMs < first.atMs) first = timer;
    }
    return first;
  }
}

interface Timer {
  readonly atMs: number;
  readonly callback: () => void;
}
