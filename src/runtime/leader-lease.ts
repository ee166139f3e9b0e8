import type { Client } from "../client/index.ts";
import { assert } from "../kernel/assert.ts";
import { sleep, type Clock } from "../kernel/clock.ts";
import { guard } from "../kernel/guard.ts";
import type { Random } from "../kernel/random.ts";
import { jittered } from "./backoff.ts";
import { LeaseClaim } from "./lease-claim.ts";

export interface LeaderLeaseOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly namespace: string;
  readonly name: string;
  /** Who we are, for people. What makes it unique for this run is added. */
  readonly identity: string;
  /** How long others wait after the last sign of life. Whole seconds. */
  readonly durationMs?: number;
  /**
   * How long we believe in the lease after asking for it. Shorter than the duration: the difference
   * is how much faster than ours another's clock may run.
   */
  readonly validMs?: number;
  /** How often it is renewed, or tried for; up to 20 % more or less. */
  readonly retryMs?: number;
  /** How long after the end of another's lease its last requests may still take effect. */
  readonly graceMs: number;
  /**
   * What a missing Lease means. `wait`: somebody may have deleted it under a holder, so nothing is
   * written until such a holder's time is over. `trust`: something else, as the lock of the data
   * folder, says that there is no other.
   */
  readonly whenAbsent?: "wait" | "trust";
  /** We hold it. Reading may begin; for writing ask `mayWrite` each time. Must not throw. */
  readonly onStarted: (term: LeaderTerm) => void;
  /**
   * We hold it no longer, or are about to let go. Resolves when nothing that rests on it runs any
   * more; on a stop the lease is renewed until then.
   */
  readonly onStopped: () => Promise<void> | void;
  readonly onError?: (error: unknown) => void;
}

export interface LeaderTerm {
  readonly identity: string;
  /** On the monotonic clock: nothing may be written before. */
  readonly safeAfterMs: number;
}

/** One of several processes that contend for being the only one to write. */
export interface LeaderLease {
  readonly identity: string;
  /** Whether the lease is ours at this moment of the monotonic clock. */
  isHeld(nowMonotonicMs?: number): boolean;
  /**
   * Whether a write may go out at this moment: the lease is ours, and whatever its last holder sent
   * has taken effect or never will. It holds for the tick in which it was asked, not for a later
   * one: ask, and send without an await between.
   */
  mayWrite(nowMonotonicMs?: number): boolean;
  /** On the monotonic clock, as soon as the lease was ours once. */
  safeAfterMs(): number | undefined;
  /** Who holds it, as it was last seen; "" for nobody. */
  holder(): string;
  /** Lets those who rest on it finish, then releases it. Safe to repeat. */
  stop(): Promise<void>;
}

const durationMsDefault = 15_000;
const validMsDefault = 10_000;
const retryMsDefault = 2_000;
const retryJitter = 0.2;
/** A release that loses to a renewal still under way is tried again so often; then it runs out. */
const releasesMax = 3;

/**
 * Contends for a Lease until it is stopped. At any moment at most one contender may write, however
 * requests and replies are lost or late, whoever pauses or crashes, and whatever the wall clocks
 * say; what it rests on is told in lease-claim.ts.
 */
export function startLeaderLease(options: LeaderLeaseOptions): LeaderLease {
  const contender = new Contender(options);
  const running = contender.run();
  const { claim } = contender;
  const now = (): number => options.clock.monotonicMs();
  return {
    identity: claim.identity,
    isHeld: (nowMs = now()) => claim.isHeld(nowMs),
    mayWrite: (nowMs = now()) =>
      guard("lease-held", claim.isHeld(nowMs)) && guard("lease-safe", nowMs >= claim.safeAfterMs()),
    safeAfterMs: () => (claim.safeAfterMs() === Infinity ? undefined : claim.safeAfterMs()),
    holder: () => claim.holder(),
    stop: () => {
      contender.stop();
      return running;
    },
  };
}

class Contender {
  readonly claim: LeaseClaim;
  readonly #options: LeaderLeaseOptions;
  readonly #stopping = new AbortController();

  constructor(options: LeaderLeaseOptions) {
    const { durationMs = durationMsDefault, validMs = validMsDefault } = options;
    const { retryMs = retryMsDefault, whenAbsent = "wait" } = options;
    assert(durationMs >= 1000 && durationMs % 1000 === 0, "a lease lasts whole seconds");
    assert(retryMs * 2 < validMs && validMs < durationMs, "retry, then validity, then duration");
    this.#options = { ...options, retryMs };
    const identity = `${options.identity}_${options.random.uuid()}`;
    const { client, clock, namespace, name, graceMs } = options;
    const timing = { durationMs, validMs, graceMs, whenAbsent };
    this.claim = new LeaseClaim({ client, clock, namespace, name, identity, ...timing });
  }

  stop(): void {
    this.#stopping.abort(new Error("the contender was stopped"));
  }

  async run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      await this.#contend(signal);
      if (!this.claim.isHeld()) continue;
      const { identity } = this.claim;
      this.#options.onStarted({ identity, safeAfterMs: this.claim.safeAfterMs() });
      await this.#keep(signal);
      await this.#finish();
    }
    await this.#release();
  }

  async #contend(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#attempt(signal);
      if (this.claim.isHeld()) return;
      await this.#pause(signal);
    }
  }

  /** Renews until the lease is lost or the signal says so. */
  async #keep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.claim.isHeld()) {
      await this.#pause(signal);
      if (signal.aborted || !this.claim.isHeld()) return;
      await this.#attempt(signal);
    }
  }

  /** Those who rest on the lease finish; on a stop, with the lease still in their backs. */
  async #finish(): Promise<void> {
    const finishing = new AbortController();
    const finished = Promise.resolve(this.#options.onStopped()).finally(() => finishing.abort());
    await Promise.all([finished, this.#keep(finishing.signal)]);
  }

  async #attempt(signal: AbortSignal): Promise<void> {
    try {
      await this.claim.attempt(this.#deadlineMs(), signal);
    } catch (error) {
      if (!signal.aborted) this.#options.onError?.(error);
    }
  }

  async #release(): Promise<void> {
    for (let left = releasesMax; left > 0 && this.claim.mayBeOurs; left -= 1) {
      try {
        await this.claim.release(this.#deadlineMs());
      } catch (error) {
        this.#options.onError?.(error);
      }
    }
  }

  /** No request takes longer than two tries, nor longer than we can believe in the lease. */
  #deadlineMs(): number {
    const { retryMs = retryMsDefault } = this.#options;
    return Math.min(2 * retryMs, this.claim.remainingMs() ?? Infinity);
  }

  async #pause(signal: AbortSignal): Promise<void> {
    const { clock, random, retryMs = retryMsDefault } = this.#options;
    const remainingMs = this.claim.remainingMs() ?? Infinity;
    // At least a millisecond: what is left of a lease may be too short for any clock to pass.
    const pauseMs = Math.min(jittered(retryMs, retryJitter, random), Math.ceil(remainingMs));
    try {
      await sleep(clock, pauseMs, signal);
    } catch (reason) {
      // Stopped while waiting; anything else would be a bug of the clock.
      if (!signal.aborted) throw reason;
    }
  }
}
