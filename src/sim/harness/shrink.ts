import { runHistoryAlone, type HistoryResult } from "./history.ts";
import type { Step } from "./script.ts";
import { Violation } from "./violation.ts";

/** A failing history with everything left out that it fails without. */
export interface Shrunk {
  readonly seed: number;
  readonly failure: Error;
  readonly steps: readonly Step[];
  /** How many steps the whole history had. */
  readonly stepsBefore: number;
  readonly events: number;
  readonly eventsBefore: number;
  /** How many histories it took to find out. */
  readonly runs: number;
  /** What happened, without the reads that were answered. */
  readonly trace: readonly string[];
}

/**
 * Makes a failing history shorter: leaves out half of its steps, then quarters and so on down to
 * single ones, as long as the same law is still broken. Nothing if the seed breaks no law.
 */
export async function shrink(
  seed: number,
  also: readonly string[] = [],
): Promise<Shrunk | undefined> {
  const whole = await runHistoryAlone({ seed, also });
  if (whole.failure === undefined) return undefined;
  const wanted = nameOf(whole.failure);
  let steps = whole.steps.map(({ index }) => index);
  let runs = 1;
  const stillFails = async (indexes: readonly number[]): Promise<boolean> => {
    runs += 1;
    const { failure } = await runHistoryAlone({ seed, also, only: new Set(indexes) });
    return failure !== undefined && nameOf(failure) === wanted;
  };
  for (let size = Math.ceil(steps.length / 2); size >= 1; size = Math.floor(size / 2)) {
    steps = await withoutChunks(steps, size, stillFails);
  }
  const trace: string[] = [];
  const listen = (line: string): void => void (isTold(line) && trace.push(line));
  const short = await runHistoryAlone({ seed, also, only: new Set(steps), listen });
  return describe(whole, short, { runs: runs + 1, trace });
}

/** Leaves out every chunk of so many steps that is not needed, the latest first. */
async function withoutChunks(
  steps: readonly number[],
  size: number,
  stillFails: (steps: readonly number[]) => Promise<boolean>,
): Promise<number[]> {
  let kept = [...steps];
  for (let end = kept.length; end > 0; end -= size) {
    const start = Math.max(end - size, 0);
    const rest = [...kept.slice(0, start), ...kept.slice(end)];
    if (rest.length > 0 && (await stillFails(rest))) kept = rest;
  }
  return kept;
}

function describe(
  whole: HistoryResult,
  short: HistoryResult,
  { runs, trace }: Pick<Shrunk, "runs" | "trace">,
): Shrunk {
  // A history whose every step is needed was run with all of them before.
  const { failure = new Error("the shortened history does not fail") } = short;
  return {
    seed: whole.seed,
    failure,
    steps: short.steps,
    stepsBefore: whole.steps.length,
    events: short.events,
    eventsBefore: whole.events,
    runs,
    trace,
  };
}

/** What has to stay the same: the law, or the kind of the error. */
function nameOf(failure: Error): string {
  return failure instanceof Violation ? `law ${failure.law}` : failure.message.slice(0, 40);
}

/** Reads that were answered explain little; what changed something, or failed, does. */
function isTold(line: string): boolean {
  return (
    !/ GET \S+( \([^)]*\))?: 200/.test(line) && !/ (PUT|POST) \S*(leases|events)\S*: 2/.test(line)
  );
}
