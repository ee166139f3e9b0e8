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
  /** What is left out otherwise, by name; see `not-yet.ts`. */
  readonly also?: readonly string[];
  readonly clock: Clock;
  readonly onProgress: (progress: SeedsProgress) => void;
  readonly signal: AbortSignal;
  /** What runs the seeds, in place of the worker beside this file. */
  readonly worker?: URL;
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

/**
 * Runs histories one after the other on every thread. Every seed that was taken has a report: one
 * whose worker did not live to tell it has failed.
 */
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
  // The same file as TypeScript, and as JavaScript in the package.
  const beside = new URL(`./seed-worker${extname(import.meta.url)}`, import.meta.url);
  const { also = [] } = options;
  const thread = { file: options.worker ?? beside, take, note, also };
  await Promise.all(Array.from({ length: options.threads }, () => runThread(thread)));
  return { ...total, failed: failed.toSorted((a, b) => a.seed - b.seed) };
}

interface Thread {
  readonly file: URL;
  readonly take: () => number | undefined;
  readonly note: (report: SeedReport) => void;
  readonly also: readonly string[];
}

/** Runs seeds on one worker, and on another one when a history took it down. */
async function runThread(thread: Thread): Promise<void> {
  for (;;) {
    const fallen = await runWorker(thread);
    if (fallen === undefined) return;
    thread.note(fallen);
  }
}

/** Until no seed is left; or the seed that the worker did not survive. */
async function runWorker({ file, take, note, also }: Thread): Promise<SeedReport | undefined> {
  const first = take();
  if (first === undefined) return undefined;
  const worker = new Worker(file, { execArgv: [], workerData: { also } });
  const ended = Promise.withResolvers<SeedReport | undefined>();
  let seed = first;
  let why = "";
  worker.on("message", (report: SeedReport) => {
    note(report);
    const next = take();
    if (next === undefined) return ended.resolve(undefined);
    seed = next;
    worker.postMessage(next);
  });
  worker.on("error", (error) => {
    why = `: ${String(error)}`;
  });
  // Whoever goes before it has told how its seed went proves nothing about it.
  worker.on("exit", (code) => ended.resolve(fallenAt(seed, `it ended with ${code}${why}`)));
  worker.postMessage(first);
  try {
    return await ended.promise;
  } finally {
    await worker.terminate();
  }
}

function fallenAt(seed: number, how: string): SeedReport {
  const failure = `the history took its worker down: ${how}`;
  return { seed, events: 0, simulatedMs: 0, cpuMs: 0, failure };
}
