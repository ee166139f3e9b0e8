import type { Cancel, Clock } from "./clock.ts";

/**
 * Time that passes only when it is told to. Tests and the simulation run on it; callbacks run in
 * the order of their times, and those of the same time in the order in which they were set.
 */
export class VirtualClock implements Clock {
  readonly #startMs: number;
  #elapsedMs = 0;
  #nextOrder = 0;
  /** A binary heap: each timer comes before the two below it, which are at 2i+1 and 2i+2. */
  readonly #heap: Timer[] = [];

  /** Everything that runs on it is one machine, unless somebody says otherwise. */
  readonly bootId = "virtual";

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
    const atMs = this.#elapsedMs + Math.max(0, delayMs);
    const place = this.#heap.length;
    const timer: Timer = { atMs, order: this.#nextOrder++, callback, place };
    this.#rise(timer, place);
    return () => this.#remove(timer);
  }

  /** How many callbacks are still to come: whatever was stopped must leave none. */
  get timers(): number {
    return this.#heap.length;
  }

  /** When the next callback comes, in milliseconds from now; undefined if none does. */
  nextInMs(): number | undefined {
    const next = this.#heap[0];
    return next && next.atMs - this.#elapsedMs;
  }

  /** Lets time pass. Callbacks that set further ones within that time are waited for too. */
  advance(ms: number): void {
    const endMs = this.#elapsedMs + ms;
    for (let next = this.#heap[0]; next && next.atMs <= endMs; next = this.#heap[0]) {
      this.#elapsedMs = next.atMs;
      this.#remove(next);
      next.callback();
    }
    this.#elapsedMs = endMs;
  }

  #remove(timer: Timer): void {
    const { place } = timer;
    if (place === gone) return;
    timer.place = gone;
    const last = this.#heap.pop();
    if (last === undefined || last === timer) return;
    // The last one takes the free place, and moves from there to where it belongs.
    this.#sink(last, this.#rise(last, place));
  }

  /** Puts a timer at a place or above it, and returns where it came to be. */
  #rise(timer: Timer, from: number): number {
    let place = from;
    while (place > 0) {
      const aboveIt = (place - 1) >> 1;
      const above = this.#heap[aboveIt];
      if (above === undefined || !comesBefore(timer, above)) break;
      this.#put(above, place);
      place = aboveIt;
    }
    this.#put(timer, place);
    return place;
  }

  #sink(timer: Timer, from: number): void {
    let place = from;
    for (;;) {
      const below = this.#firstBelow(place);
      if (below === undefined || !comesBefore(below, timer)) break;
      const next = below.place;
      this.#put(below, place);
      place = next;
    }
    this.#put(timer, place);
  }

  #firstBelow(place: number): Timer | undefined {
    const left = this.#heap[2 * place + 1];
    const right = this.#heap[2 * place + 2];
    if (left === undefined || right === undefined) return left;
    return comesBefore(right, left) ? right : left;
  }

  #put(timer: Timer, place: number): void {
    this.#heap[place] = timer;
    timer.place = place;
  }
}

interface Timer {
  readonly atMs: number;
  /** Counts up: of two timers with the same time, the one that was set first comes first. */
  readonly order: number;
  readonly callback: () => void;
  /** Where it is in the heap. */
  place: number;
}

/** The place of a timer that has fired or was cancelled. */
const gone = -1;

function comesBefore(left: Timer, right: Timer): boolean {
  return left.atMs < right.atMs || (left.atMs === right.atMs && left.order < right.order);
}
