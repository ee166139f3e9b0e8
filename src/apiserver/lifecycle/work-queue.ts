import type { Cancel, Clock } from "../../kernel/clock.ts";

/** Tasks under way at once. Their writes reach the disk together. */
const tasksAtOnce = 64;
/** Rounds without a pause. After them others get their turn, even if every task was trivial. */
const roundsPerTurn = 16;
const retryFirstMs = 1_000;
const retryMostMs = 30_000;

export interface WorkQueueOptions {
  readonly clock: Clock;
  /** Looks at one key. What it throws is told to `failed`, and the key is looked at again later. */
  readonly work: (key: string) => Promise<void>;
  readonly failed: (key: string, error: unknown) => void;
}

/**
 * Keys to look at, each at most once at a time. A key that is added while it is being looked at is
 * looked at once more, so that no change is missed.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #waiting = new Set<string>();
  readonly #failures = new Map<string, number>();
  readonly #retries = new Map<string, Cancel>();
  #running: Promise<void> | undefined;
  #isStopped = false;

  constructor(options: WorkQueueOptions) {
    this.#options = options;
  }

  add(key: string): void {
    if (this.#isStopped) return;
    this.#cancelRetry(key);
    this.#waiting.add(key);
    this.#running ??= this.#run();
  }

  /** Resolves when there is nothing to do. Retries that wait for their time do not count. */
  async idle(): Promise<void> {
    while (this.#running) await this.#running;
  }

  /** Takes no more keys; resolves when the tasks under way have ended. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#waiting.clear();
    for (const key of this.#retries.keys()) this.#cancelRetry(key);
    await this.idle();
  }

  async #run(): Promise<void> {
    // Whoever adds a key is in the middle of something else: the store is telling its watchers.
    await Promise.resolve();
    for (let round = 1; this.#waiting.size > 0; round++) {
      const keys = [...this.#waiting.keys().take(tasksAtOnce)];
      for (const key of keys) this.#waiting.delete(key);
      await Promise.all(keys.map((key) => this.#look(key)));
      if (round % roundsPerTurn === 0) await this.#pause();
    }
    this.#running = undefined;
  }

  async #look(key: string): Promise<void> {
    try {
      await this.#options.work(key);
      this.#failures.delete(key);
    } catch (error) {
      this.#retryLater(key);
      this.#options.failed(key, error);
    }
  }

  #retryLater(key: string): void {
    if (this.#isStopped || this.#waiting.has(key)) return;
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    const delayMs = Math.min(retryMostMs, retryFirstMs * 2 ** (failures - 1));
    this.#cancelRetry(key);
    this.#retries.set(
      key,
      this.#options.clock.after(delayMs, () => this.add(key)),
    );
  }

  #cancelRetry(key: string): void {
    this.#retries.get(key)?.();
    this.#retries.delete(key);
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => this.#options.clock.after(0, resolve));
  }
}
