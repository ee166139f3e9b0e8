/** How much may happen at once, and how fast that is filled up again. */
export interface BucketRate {
  readonly burst: number;
  readonly refillMs: number;
}

/** A token bucket: full at first, then one more for each refill. Time comes in as an argument. */
export class TokenBucket {
  readonly #rate: BucketRate;
  #tokens: number;
  #filledMs: number;

  constructor(rate: BucketRate, nowMonotonicMs: number) {
    this.#rate = rate;
    this.#tokens = rate.burst;
    this.#filledMs = nowMonotonicMs;
  }

  /** Takes one, if there is one. */
  take(nowMonotonicMs: number): boolean {
    const gained = (nowMonotonicMs - this.#filledMs) / this.#rate.refillMs;
    this.#tokens = Math.min(this.#rate.burst, this.#tokens + gained);
    this.#filledMs = nowMonotonicMs;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
