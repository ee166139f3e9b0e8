import type { Cancel, Clock } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";
import { jittered } from "./backoff.ts";
import type { ControllerMetrics } from "./controller-metrics.ts";
import type { OutsideTime } from "./outside-time.ts";
import { defaultFailure, FailureBook, type Failure, type FailureReport } from "./failures.ts";
import type { Outcome } from "./outcome.ts";
import type { Source, Trigger } from "./source.ts";
import { WorkQueue, type AddOptions, type Priority, type Turn } from "./work-queue.ts";

export interface ControllerOptions {
  readonly name: string;
  readonly sources: readonly Source[];
  /**
   * Moves one key toward what is declared. It is given a key and never an object: it looks for
   * itself, so lost or doubled events cannot matter. What it throws is a failure.
   */
  readonly reconcile: (key: string) => Promise<Outcome>;
  readonly clock: Clock;
  readonly random: Random;
  /** How many keys may run at once. */
  readonly concurrency?: number;
  /** How often all keys are looked at without a reason, ±20 %. */
  readonly resyncMs?: number;
  /** Says what an error is; undefined where it does not know. */
  readonly classify?: (error: unknown) => Failure | undefined;
  /**
   * Tells people of a failure and of what comes next, before the key rests. What it throws goes to
   * `onError` and changes nothing.
   */
  readonly reportFailure?: (report: FailureReport) => Promise<void>;
  readonly metrics?: ControllerMetrics;
  /** Tells the waits for others from our own time. */
  readonly outside?: OutsideTime;
  /** Told after each run how much of it was our own time. Needs `outside`. */
  readonly spent?: (key: string, ownMs: number) => void;
  readonly onError?: (error: unknown, key: string) => void;
}

export interface Controller {
  /** Resolves when all sources are complete and work begins; rejects if that never happens. */
  readonly started: Promise<void>;
  /** Asks for a run: at once, or after a while. */
  enqueue(key: string, options?: AddOptions): void;
  /** Something that the key depends on changed: it runs at once, also out of a backoff. */
  wake(key: string): void;
  view(): ReturnType<WorkQueue["view"]> & { failing: number };
  /** Starts nothing more; resolves when what runs has ended. Safe to repeat. */
  stop(): Promise<void>;
}

const concurrencyDefault = 8;
const resyncMsDefault = 10 * 60_000;
const resyncJitter = 0.2;
/**
 * Steps in a row without a wait. The longest saga is far shorter; beyond it a plan does not see
 * its own effect, and would otherwise ask for the same step as fast as the machine can.
 */
const stepsInARowMax = 50;
const runawayDelayMs = 1_000;
const stepMsMost = 1_000;

/** Starts a controller. It collects keys at once, and works when its sources are complete. */
export function startController(options: ControllerOptions): Controller {
  const loop = new ControllerLoop(options);
  const started = loop.start();
  // Whoever does not wait for the start need not hear that it never came.
  started.catch(() => undefined);
  return {
    started,
    enqueue: (key, add) => loop.queue.add(key, add),
    wake: (key) => loop.look(key, "changed"),
    view: () => ({ ...loop.queue.view(), failing: loop.failures.size }),
    stop: () => loop.stop(),
  };
}

/** What became of a run: the reconcile's own word, or what follows from its failure. */
type Verdict = Outcome | { readonly type: "failed"; readonly next: FailureReport["next"] };

class ControllerLoop {
  readonly queue: WorkQueue;
  readonly failures: FailureBook;
  readonly #options: ControllerOptions;
  readonly #stepsInARow = new Map<string, number>();
  readonly #undo: (() => void)[] = [];
  #cancelResync: Cancel = () => undefined;
  #isStopped = false;

  constructor(options: ControllerOptions) {
    this.#options = options;
    this.failures = new FailureBook(options);
    this.queue = new WorkQueue({
      clock: options.clock,
      concurrency: options.concurrency ?? concurrencyDefault,
      work: (turn) => this.#work(turn),
      ...(options.metrics ? { hooks: options.metrics.queue } : {}),
    });
  }

  async start(): Promise<void> {
    const { sources } = this.#options;
    for (const source of sources) {
      this.#undo.push(source.on((key, trigger) => this.look(key, trigger)));
    }
    await Promise.all(sources.map((source) => source.synced));
    if (this.#isStopped) throw new Error(`${this.#options.name} was stopped before it started`);
    this.queue.start();
    this.#resyncLater();
  }

  stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancelResync();
    for (const undo of this.#undo.splice(0)) undo();
    return this.queue.stop();
  }

  look(key: string, trigger: Trigger): void {
    switch (trigger) {
      case "edit":
        this.failures.clear(key);
        return this.queue.add(key, { priority: "edit" });
      case "changed":
        return this.queue.add(key, { priority: "resync" });
      case "resync":
        if (this.failures.isResting(key)) return;
        return this.queue.add(key, { priority: "resync" });
    }
  }

  #resyncLater(): void {
    const { clock, random, sources, resyncMs = resyncMsDefault } = this.#options;
    this.#cancelResync = clock.after(jittered(resyncMs, resyncJitter, random), () => {
      for (const source of sources) for (const key of source.keys()) this.look(key, "resync");
      this.#resyncLater();
    });
  }

  async #work(turn: Turn): Promise<void> {
    this.failures.wake(turn.key);
    const verdict = await this.#timed(turn.key);
    // Concluded on a line of its own: what follows must not hang on whether anybody counts it.
    const label = this.#conclude(turn, verdict);
    this.#options.metrics?.outcome(label);
  }

  #timed(key: string): Promise<Verdict> {
    const { clock, outside, metrics, spent } = this.#options;
    if (outside === undefined) return this.#reconcile(key);
    const startMs = clock.monotonicMs();
    const done = (outsideMs: number): void => {
      const ownMs = clock.monotonicMs() - startMs - outsideMs;
      metrics?.own(ownMs);
      spent?.(key, ownMs);
    };
    return outside.run(() => this.#reconcile(key), done);
  }

  async #reconcile(key: string): Promise<Verdict> {
    try {
      return await this.#options.reconcile(key);
    } catch (error) {
      return await this.#fail(key, error);
    }
  }

  async #fail(key: string, error: unknown): Promise<Verdict> {
    const { classify, reportFailure, metrics, onError } = this.#options;
    const failure = classify?.(error) ?? defaultFailure(error);
    const report = this.failures.record(key, error, failure);
    metrics?.failure(failure.category);
    if (failure.isQuiet) return { type: "failed", next: report.next };
    onError?.(error, key);
    try {
      await reportFailure?.(report);
    } catch (reportError) {
      onError?.(reportError, key);
    }
    return { type: "failed", next: report.next };
  }

  /** The one place where a verdict becomes what the queue does next, and a label. */
  #conclude({ key, priority }: Turn, verdict: Verdict): string {
    if (verdict.type !== "again") this.#stepsInARow.delete(key);
    switch (verdict.type) {
      case "settled":
        this.failures.clear(key);
        return "settled";
      case "again":
        this.queue.add(key, { priority: "step", delayMs: this.#delayOfStep(key) });
        return "again";
      case "wait":
        this.queue.add(key, nextTurn(priority, verdict.afterMs));
        return "wait";
      case "stalled":
        return "stalled";
      case "failed":
        if (verdict.next.type === "stall") return "gave_up";
        this.queue.add(key, { priority: rested(priority), delayMs: verdict.next.afterMs });
        return "retry";
    }
  }

  #delayOfStep(key: string): number {
    const steps = (this.#stepsInARow.get(key) ?? 0) + 1;
    this.#stepsInARow.set(key, steps);
    return steps > stepsInARowMax ? runawayDelayMs : 0;
  }
}

/**
 * What waits for a moment only is under way, and what is under way comes before what has not begun:
 * of a thousand new objects each would otherwise take its turn before a task that has ended is
 * noticed, and what that holds would stand idle.
 */
function nextTurn(priority: Priority, delayMs: number): AddOptions {
  return { priority: delayMs <= stepMsMost ? "step" : rested(priority), delayMs };
}

/** After a rest it is no more urgent than any edit. */
function rested(priority: Priority): Priority {
  return priority === "step" ? "edit" : priority;
}
