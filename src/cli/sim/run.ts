import { type Call, exitCodes, type Terminal, usageError } from "../command.ts";
import type { SeedsProgress, SeedsResult } from "../../sim/harness/index.ts";

const seedsDefault = 200;
const progressMs = 10_000;
const dayMs = 24 * 60 * 60 * 1000;

/** `berth sim run`: many histories, or one of them told event by event. */
export async function runSimulation(call: Call): Promise<number> {
  const seed = readCount(call, "seed");
  const isShrunk = call.flag("shrink");
  const only = readSteps(call);
  if (seed === undefined && (isShrunk || only !== undefined))
    throw usageError("--shrink and --steps belong to one history: name it with --seed");
  if (seed !== undefined && isShrunk) return await shrinkOne(seed, call.terminal);
  if (seed !== undefined) return await tellOne({ seed, only }, call.terminal);
  const from = readCount(call, "from") ?? 1;
  const minutes = readCount(call, "minutes");
  const seeds = readCount(call, "seeds") ?? (minutes === undefined ? seedsDefault : undefined);
  return await runMany({ from, seeds, minutes }, call.terminal);
}

interface Wanted {
  readonly from: number;
  readonly seeds: number | undefined;
  readonly minutes: number | undefined;
}

async function runMany({ from, seeds, minutes }: Wanted, terminal: Terminal): Promise<number> {
  const [{ runSeeds }, { systemClock }, { availableParallelism }] = await Promise.all([
    import("../../sim/harness/index.ts"),
    import("../../app/index.ts"),
    import("node:os"),
  ]);
  const stopping = new AbortController();
  terminal.interrupted.then(
    () => stopping.abort(),
    () => undefined,
  );
  const startMs = systemClock.monotonicMs();
  let toldMs = startMs;
  let told = 0;
  const onProgress = (progress: SeedsProgress): void => {
    // Whoever watches can look at the first while the rest goes on.
    for (const { seed, failure } of progress.failed.slice(told)) {
      terminal.print(`seed ${seed}: ${failure ?? ""}\n  to see it: berth sim run --seed ${seed}`);
    }
    told = progress.failed.length;
    const nowMs = systemClock.monotonicMs();
    if (nowMs - toldMs < progressMs) return;
    toldMs = nowMs;
    const of = seeds === undefined ? "" : ` of ${seeds}`;
    terminal.note(`${progress.done}${of} seeds, ${progress.failed.length} with a violation`);
  };
  const result = await runSeeds({
    from,
    count: seeds,
    untilMs: minutes === undefined ? undefined : startMs + minutes * 60_000,
    threads: availableParallelism(),
    clock: systemClock,
    onProgress,
    signal: stopping.signal,
  });
  terminal.print(summaryOf(result, systemClock.monotonicMs() - startMs));
  if (result.failed.length > 0) return exitCodes.failed;
  // Who asks for so many and gets fewer knows nothing of the rest, unless he broke it off himself.
  const isWhole = result.done >= (seeds ?? 1) || stopping.signal.aborted;
  return isWhole ? exitCodes.ok : exitCodes.failed;
}

function summaryOf(result: SeedsResult, wallMs: number): string {
  const { done, failed, events, simulatedMs, cpuMs } = result;
  const perCore = cpuMs === 0 ? 0 : done / (cpuMs / 1000);
  return [
    `${done} seeds in ${(wallMs / 1000).toFixed(0)} s`,
    `${events} events`,
    `${(simulatedMs / dayMs).toFixed(1)} simulated days`,
    `${perCore.toFixed(1)} seeds per second and core`,
    failed.length === 0 ? "no violation" : `${failed.length} with a violation`,
  ].join(", ");
}

interface Told {
  readonly seed: number;
  readonly only: ReadonlySet<number> | undefined;
}

async function tellOne({ seed, only }: Told, terminal: Terminal): Promise<number> {
  const { runHistoryAlone } = await import("../../sim/harness/index.ts");
  const listen = (line: string): void => terminal.print(line);
  const result = await runHistoryAlone({ seed, listen, ...(only === undefined ? {} : { only }) });
  const { events, home, simulatedMs, failure } = result;
  const seconds = (simulatedMs / 1000).toFixed(0);
  terminal.print(`seed ${seed}: ${home}, ${events} events in ${seconds} simulated seconds`);
  terminal.print(failure === undefined ? "no violation" : failure.message);
  return failure === undefined ? exitCodes.ok : exitCodes.failed;
}

/** `--shrink`: the same violation with as little around it as possible. */
async function shrinkOne(seed: number, terminal: Terminal): Promise<number> {
  const { shrink } = await import("../../sim/harness/index.ts");
  const shrunk = await shrink(seed);
  if (shrunk === undefined) {
    terminal.print(`seed ${seed}: no violation, so there is nothing to make shorter`);
    return exitCodes.ok;
  }
  const { trace, failure, steps, stepsBefore, events, eventsBefore, runs } = shrunk;
  for (const line of trace) terminal.print(line);
  terminal.print(failure.message);
  terminal.print(
    `seed ${seed}: ${steps.length} of ${stepsBefore} steps and ${events} of ${eventsBefore} ` +
      `events are enough, found in ${runs} histories`,
  );
  terminal.print(`the steps: ${steps.map(({ index, name }) => `${index} ${name}`).join(", ")}`);
  const places = steps.map(({ index }) => index).join(",");
  terminal.print(`all of it: berth sim run --seed ${seed} --steps ${places}`);
  return exitCodes.failed;
}

function readSteps(call: Call): ReadonlySet<number> | undefined {
  const text = call.string("steps");
  if (text === undefined) return undefined;
  if (!/^[0-9]{1,4}(,[0-9]{1,4})*$/.test(text))
    throw usageError(`--steps takes numbers with commas between them, not "${text}"`);
  return new Set(text.split(",").map(Number));
}

function readCount(call: Call, option: string): number | undefined {
  const text = call.string(option);
  if (text === undefined) return undefined;
  const count = Number(text);
  if (/^[0-9]{1,9}$/.test(text) && count > 0) return count;
  throw usageError(`--${option} takes a whole number above 0, not "${text}"`);
}
