import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { Clock } from "../../kernel/clock.ts";
import type { SeedReport } from "./seed-worker.ts";

export interface SeedsOptions {
  readonly from: number;
  /** How many; absent: until `untilMs`. */
  readonly count: number | undefined;
  /** On the monotonic clock. */
  readonly untilMs: number | undefined;
  readonly threads: number;
  readonly clock: Clock;
  readonly onProgress: (progress: SeedsProgress) => void;
  readonly signal: AbortSignal;
}

export interface SeedsProgress {
  readonly done: number;
  readonly failed: readonly SeedReport[];
}

export interface SeedsResult extends SeedsProgress {
  readonly events: number;
  /** Of the one with the fewest. */
  readonly eventsLeast: number;
  readonly simulatedMs: number;
  /** What the histories took of all processors together. */
  readonly cpuMs: number;
}

/** After so many failures there is enough to look at. */
const failuresMax = 20;

/** Runs histories one after the other on every thread. */
export async function runSeeds(options: SeedsOptions): Promise<SeedsResult> {
  const total = { done: 0, events: 0, eventsLeast: Infinity, simulatedMs: 0, cpuMs: 0 };
  const failed: SeedReport[] = [];
  let next = options.from;
  const isOver = (): boolean => {
    const { count, untilMs, signal, from, clock } = options;
    if (signal.aborted || failed.length >= failuresMax) return true;
    if (count !== undefined && next >= from + count) return true;
    return untilMs !== undefined && clock.monotonicMs() >= untilMs;
  };
  const take = (): number | undefined => (isOver() ? undefined : next++);
  const note = (report: SeedReport): void => {
    total.done += 1;
    total.events += report.events;
    total.eventsLeast = Math.min(total.eventsLeast, report.events);
    total.simulatedMs += report.simulatedMs;
    total.cpuMs += report.cpuMs;
    if (report.failure !== undefined) failed.push(report);
    options.onProgress({ done: total.done, failed });
  };
  await Promise.all(Array.from({ length: options.threads }, () => runThread(take, note)));
  return { ...total, failed: failed.toSorted((a, b) => a.seed - b.seed) };
}

async function runThread(
  take: () => number | undefined,
  note: (report: SeedReport) => void,
): Promise<void> {
  // The same file as TypeScript, and as JavaScript in the package.
  const file = new URL(`./seed-worker${extname(import.meta.url)}`, import.meta.url);
  const worker = new Worker(file, { execArgv: [] });
  const ended = Promise.withResolvers<void>();
  const feed = (): void => {
    const seed = take();
    if (seed === undefined) ended.resolve();
    else worker.postMessage(seed);
  };
  worker.on("message", (report: SeedReport) => {
    note(report);
    feed();
  });
  worker.on("error", (error) => ended.reject(error));
  worker.on("exit", () => ended.resolve());
  feed();
  try {
    await ended.promise;
  } finally {
    await worker.terminate();
  }
}
