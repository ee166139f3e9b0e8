import type { Cancel, Clock } from "../../kernel/clock.ts";
import { never } from "../../kernel/never.ts";
import type { VirtualClock } from "../../kernel/virtual-clock.ts";

/** When the next crash comes: at a call to the outside, before it is made or after its effect. */
export interface Doom {
  callsLeft: number;
  readonly when: "before" | "after";
  /** Only calls that change something on a hypervisor count. */
  readonly onlyEffects?: boolean;
}

/**
 * One run of a program. When it dies its calls never settle again and its timers never fire; what
 * it had sent takes effect all the same. While it sleeps, as a stopped process does, answers and
 * timers wait for it.
 */
export class Life {
  readonly #clock: VirtualClock;
  isDead = false;
  doom: Doom | undefined;
  /** For how long it is stopped right before it sends the next change. */
  napMs = 0;
  calls = 0;
  #sleepsUntilMs = 0;
  readonly #onDeath: () => void;

  constructor(clock: VirtualClock, onDeath: () => void) {
    this.#clock = clock;
    this.#onDeath = onDeath;
  }

  die(): void {
    if (this.isDead) return;
    this.isDead = true;
    this.#onDeath();
  }

  sleep(ms: number): void {
    this.#sleepsUntilMs = Math.max(this.#sleepsUntilMs, this.#clock.monotonicMs() + ms);
  }

  /** A call to the outside: the only places where a crash can be told from no crash. */
  async call<T>(make: () => Promise<T>, isEffect = false): Promise<T> {
    this.calls += 1;
    const dies = this.#isDoomed(isEffect);
    if (dies === "before") this.die();
    if (isEffect && this.napMs > 0) await this.#nap();
    if (this.isDead) return never();
    const made = make();
    if (dies === "after") {
      // What was begun takes its course; whoever began it does not hear of it.
      made.catch(() => undefined);
      this.die();
    }
    try {
      return await made;
    } finally {
      await this.#awake();
    }
  }

  /** A clock whose callbacks die with this life, and wait while it sleeps. */
  clock(): Clock {
    const clock = this.#clock;
    return {
      nowMs: () => clock.nowMs(),
      monotonicMs: () => clock.monotonicMs(),
      bootId: clock.bootId,
      after: (ms, then) => this.#after(ms, then),
    };
  }

  #after(ms: number, then: () => void): Cancel {
    let cancel: Cancel = () => undefined;
    const fire = (): void => {
      if (this.isDead) return;
      const leftMs = this.#sleepsUntilMs - this.#clock.monotonicMs();
      if (leftMs > 0) cancel = this.#clock.after(leftMs, fire);
      else then();
    };
    cancel = this.#clock.after(ms, fire);
    return () => cancel();
  }

  #isDoomed(isEffect: boolean): Doom["when"] | undefined {
    if (this.doom === undefined || (this.doom.onlyEffects === true && !isEffect)) return undefined;
    this.doom.callsLeft -= 1;
    return this.doom.callsLeft <= 0 ? this.doom.when : undefined;
  }

  async #nap(): Promise<void> {
    this.sleep(this.napMs);
    this.napMs = 0;
    await this.#awake();
  }

  async #awake(): Promise<void> {
    if (this.isDead) return never();
    const leftMs = this.#sleepsUntilMs - this.#clock.monotonicMs();
    if (leftMs <= 0) return undefined;
    await new Promise<void>((resolve) => void this.#clock.after(leftMs, resolve));
    return this.isDead ? never() : undefined;
  }
}
