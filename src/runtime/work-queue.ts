import { assert } from "../kernel/assert.ts";
import type { Cancel, Clock } from "../kernel/clock.ts";

/**
 * Who asks for the work: what is under way and holds something that others wait for, a person's
 * edit, a look at what may have changed, or housekeeping.
 */
export type Priority = "step" | "edit" | "resync" | "background";

/** The most urgent first. */
export const priorities = [
  "step",
  "edit",
  "resync",
  "background",
] as const satisfies readonly Priority[];

/** One run of one key, and how urgent it was. */
export interface Turn {
  readonly key: string;
  readonly priority: Priority;
}

/** What can be measured. They must neither wait nor throw. */
export interface QueueHooks {
  /** How many keys are ready and not running. */
  readonly depth?: (keys: number) => void;
  /** How long a key was ready before it ran; a delay that was asked for does not count. */
  readonly waited?: (waitMs: number) => void;
  readonly worked?: (workMs: number) => void;
}

export interface WorkQueueOptions {
  readonly clock: Clock;
  /** How many keys may run at once. */
  readonly concurrency: number;
  /** Does the work. It handles its own failures: a rejection is a bug, and ends the process. */
  readonly work: (turn: Turn) => Promise<void>;
  readonly hooks?: QueueHooks;
  /** A turn that takes longer waits for somebody far away, and no longer holds up the others. */
  readonly slowMs?: number;
}

export interface AddOptions {
  readonly priority?: Priority;
  readonly delayMs?: number;
}

/** Node's timers overflow at 24 days. Whoever looks again after one day can ask for another. */
const delayMsMax = 24 * 60 * 60 * 1000;
const slowMsDefault = 250;
/** Of turns that wait for others there may be so many times the concurrency, and no more. */
const runningFactor = 8;
/**
 * Every so many starts are for the key that has waited longest, whatever its priority: a storm of
 * edits slows housekeeping down, and does not end it.
 */
const startsPerOldest = 8;

/**
 * Keys that have work to do, each at most once. Its length is bounded by the number of keys there
 * are, so nothing is ever dropped.
 *
 * - As many keys run at once as `concurrency` says, and beside them those that are slow: one dead
 *   system whose answers never come must not keep the keys of all others waiting.
 * - A key never runs twice at once. What is added while it runs, runs it once more afterwards.
 * - Of several delays the earliest counts, and an add without delay overrides them all.
 * - The more urgent go first, equals in the order in which they came.
 * - Nothing runs before `start`, and nothing within the call that adds it.
 */
export class WorkQueue {
  readonly #options: WorkQueueOptions;
  readonly #entries = new Map<string, Entry>();
  /** Keys that are ready and not running, in their order. */
  readonly #lines: Readonly<Record<Priority, Set<string>>> = {
    step: new Set(),
    edit: new Set(),
    resync: new Set(),
    background: new Set(),
  };
  readonly #drained = Promise.withResolvers<void>();
  #state: "new" | "started" | "stopped" = "new";
  #runningCount = 0;
  /** Of those that run: the ones that are not slow. */
  #busyCount = 0;
  #startCount = 0;
  #isPumpDue = false;

  constructor(options: WorkQueueOptions) {
    assert(options.concurrency >= 1, "a queue runs at least one key at a time");
    this.#options = options;
  }

  /** Asks for a run of this key. Does nothing once the queue was stopped. */
  add(key: string, { priority = "resync", delayMs = 0 }: AddOptions = {}): void {
    assert(key !== "", "a key is not empty");
    assert(!Number.isNaN(delayMs), "a delay is a number");
    if (this.#state === "stopped") return;
    const entry = this.#entries.get(key) ?? { isRunning: false };
    this.#entries.set(key, entry);
    if (delayMs > 0) this.#delay(key, entry, { priority, delayMs: Math.min(delayMs, delayMsMax) });
    else this.#makeReady(key, entry, priority);
  }

  /** Begins to run what was added, and what will be. */
  start(): void {
    if (this.#state === "new") this.#state = "started";
    this.#pumpSoon();
  }

  /** Starts nothing more; resolves when what runs has ended. Safe to repeat. */
  stop(): Promise<void> {
    this.#state = "stopped";
    for (const entry of this.#entries.values()) {
      entry.delayed?.cancel();
      delete entry.delayed;
      entry.stepAside?.();
    }
    for (const priority of priorities) this.#lines[priority].clear();
    this.#tellDepth();
    if (this.#runningCount === 0) this.#drained.resolve();
    return this.#drained.promise;
  }

  /** What the queue is doing, for people and tests. */
  view(): { running: string[]; ready: string[]; delayed: string[] } {
    const keysOf = (test: (entry: Entry) => boolean): string[] => {
      return [...this.#entries].filter(([, entry]) => test(entry)).map(([key]) => key);
    };
    return {
      running: keysOf((entry) => entry.isRunning),
      ready: priorities.flatMap((priority) => [...this.#lines[priority]]),
      delayed: keysOf((entry) => entry.delayed !== undefined),
    };
  }

  #delay(key: string, entry: Entry, request: Required<AddOptions>): void {
    if (entry.ready !== undefined) return;
    const dueMs = this.#options.clock.monotonicMs() + request.delayMs;
    const { delayed } = entry;
    const priority = moreUrgent(request.priority, delayed?.priority);
    if (delayed !== undefined && delayed.dueMs <= dueMs) {
      entry.delayed = { ...delayed, priority };
      return;
    }
    delayed?.cancel();
    const cancel = this.#options.clock.after(request.delayMs, () => {
      this.#makeReady(key, entry, entry.delayed?.priority ?? priority);
    });
    entry.delayed = { priority, dueMs, cancel };
  }

  #makeReady(key: string, entry: Entry, asked: Priority): void {
    const { ready, delayed } = entry;
    const priority = moreUrgent(moreUrgent(asked, ready?.priority), delayed?.priority);
    delayed?.cancel();
    delete entry.delayed;
    if (ready !== undefined && ready.priority !== priority) this.#lines[ready.priority].delete(key);
    entry.ready = { priority, sinceMs: ready?.sinceMs ?? this.#options.clock.monotonicMs() };
    if (entry.isRunning) return;
    this.#lines[priority].add(key);
    this.#tellDepth();
    this.#pumpSoon();
  }

  /** Whatever is added in the same moment is put in order first. */
  #pumpSoon(): void {
    if (this.#isPumpDue || this.#state !== "started") return;
    this.#isPumpDue = true;
    queueMicrotask(() => {
      this.#isPumpDue = false;
      this.#pump();
    });
  }

  #pump(): void {
    while (this.#state === "started" && this.#hasRoom()) {
      const key = this.#next();
      const entry = key === undefined ? undefined : this.#entries.get(key);
      if (key === undefined || entry?.ready === undefined) return;
      void this.#run(key, entry, entry.ready);
    }
  }

  #hasRoom(): boolean {
    const { concurrency } = this.#options;
    return this.#busyCount < concurrency && this.#runningCount < concurrency * runningFactor;
  }

  #next(): string | undefined {
    const heads = priorities.flatMap((priority) => {
      const [key] = this.#lines[priority];
      const ready = key === undefined ? undefined : this.#entries.get(key)?.ready;
      return key === undefined || ready === undefined ? [] : [{ key, sinceMs: ready.sinceMs }];
    });
    if (heads.length > 1) this.#startCount += 1;
    if (this.#startCount < startsPerOldest) return heads[0]?.key;
    this.#startCount = 0;
    return heads.reduce((oldest, head) => (head.sinceMs < oldest.sinceMs ? head : oldest)).key;
  }

  async #run(key: string, entry: Entry, { priority, sinceMs }: Ready): Promise<void> {
    const { clock, hooks, work } = this.#options;
    const startMs = clock.monotonicMs();
    this.#lines[priority].delete(key);
    delete entry.ready;
    entry.isRunning = true;
    this.#runningCount += 1;
    entry.stepAside = this.#beBusy();
    this.#tellDepth();
    hooks?.waited?.(startMs - sinceMs);
    try {
      await work({ key, priority });
    } finally {
      entry.stepAside();
      hooks?.worked?.(clock.monotonicMs() - startMs);
      this.#runningCount -= 1;
      this.#finish(key, entry);
    }
  }

  /** Takes one of the places, until the turn is slow or the returned function is called. */
  #beBusy(): () => void {
    let isBusy = true;
    this.#busyCount += 1;
    const stepAside = (): void => {
      cancel();
      if (!isBusy) return;
      isBusy = false;
      this.#busyCount -= 1;
      this.#pumpSoon();
    };
    const cancel = this.#options.clock.after(this.#options.slowMs ?? slowMsDefault, stepAside);
    return stepAside;
  }

  #finish(key: string, entry: Entry): void {
    entry.isRunning = false;
    if (this.#state === "stopped") {
      if (this.#runningCount === 0) this.#drained.resolve();
      return;
    }
    if (entry.ready !== undefined) this.#lines[entry.ready.priority].add(key);
    else if (entry.delayed === undefined) this.#entries.delete(key);
    this.#tellDepth();
    this.#pumpSoon();
  }

  #tellDepth(): void {
    const depth = priorities.reduce((sum, priority) => sum + this.#lines[priority].size, 0);
    this.#options.hooks?.depth?.(depth);
  }
}

interface Entry {
  isRunning: boolean;
  /** While it runs: lets another run beside it. Safe to repeat. */
  stepAside?: () => void;
  /** It is to run as soon as it can; while it runs: once more afterwards. */
  ready?: Ready;
  /** It becomes ready later. Never together with `ready`. */
  delayed?: Delayed;
}

interface Ready {
  readonly priority: Priority;
  readonly sinceMs: number;
}

interface Delayed {
  readonly priority: Priority;
  readonly dueMs: number;
  readonly cancel: Cancel;
}

export function moreUrgent(left: Priority, right: Priority | undefined): Priority {
  if (right === undefined) return left;
  return priorities.indexOf(left) <= priorities.indexOf(right) ? left : right;
}
