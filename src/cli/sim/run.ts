import { type Call, exitCodes, type Terminal, usageError } from "../command.ts";
import { firstSeed } from "./first-seed.ts";
import type { SeedsProgress, SeedsResult } from "../../sim/harness/index.ts";

const seedsDefault = 200;
const progressMs = 10_000;
const dayMs = 24 * 60 * 60 * 1000;

/** `berth sim run`: many histories, or one of them told event by event. */
export async function runSimulation(call: Call): Promise<number> {
  const seed = readCount(call, "seed");
  const isShrunk = call.flag("shrink");
  const only = readSteps(call);
  const also = await readAlso(call);
  if (seed === undefined && (isShrunk || only !== undefined))
    throw usageError("--shrink and --steps belong to one history: name it with --seed");
  if (seed !== undefined && isShrunk) return await shrinkOne({ seed, also }, call.terminal);
  if (seed !== undefined) return await tellOne({ seed, only, also }, call.terminal);
  const from = readCount(call, "from");
  const minutes = readCount(call, "minutes");
  const seeds = readCount(call, "seeds") ?? (minutes === undefined ? seedsDefault : undefined);
  return await runMany({ from, seeds, minutes, also }, call.terminal);
}

interface Wanted {
  /** Absent: anywhere. */
  readonly from: number | undefined;
  readonly seeds: number | undefined;
  readonly minutes: number | undefined;
  readonly also: readonly string[];
}

async function runMany(
  { seeds, minutes, also, ...wanted }: Wanted,
  terminal: Terminal,
): Promise<number> {
  const [{ anyFirstSeed, runSeeds }, { systemClock, systemRandom }, { availableParallelism }] =
    await Promise.all([
      import("../../sim/harness/index.ts"),
      import("../../app/index.ts"),
      import("node:os"),
    ]);
  const stopping = new AbortController();
  terminal.interrupted.then(
    () => stopping.abort(),
    () => undefined,
  );
  const from = firstSeed({
    from: wanted.from,
    any: () => anyFirstSeed(systemRandom),
    print: (line) => terminal.print(line),
  });
  const startMs = systemClock.monotonicMs();
  let toldMs = startMs;
  let told = 0;
  const onProgress = (progress: SeedsProgress): void => {
    // Whoever watches can look at the first while the rest goes on.
    for (const { seed, failure } of progress.failed.slice(told)) {
      terminal.print(`seed ${seed}: ${failure ?? ""}\n  to see it: ${commandOf({ seed, also })}`);
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
    also,
    onProgress,
    signal: stopping.signal,
  });
  terminal.print(summaryOf(result, systemClock.monotonicMs() - startMs));
  terminal.print(
    `the same seeds again: berth sim run --from ${from} --seeds ${result.done}${toldAlso(also)}`,
  );
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

interface One {
  readonly seed: number;
  readonly also: readonly string[];
}

function commandOf({ seed, also }: One): string {
  return `berth sim run --seed ${seed}${toldAlso(also)}`;
}

function toldAlso(also: readonly string[]): string {
  return also.map((name) => ` --also "${name}"`).join("");
}

interface Told extends One {
  readonly only: ReadonlySet<number> | undefined;
}

async function tellOne({ seed, only, also }: Told, terminal: Terminal): Promise<number> {
  const { runHistoryAlone } = await import("../../sim/harness/index.ts");
  const listen = (line: string): void => terminal.print(line);
  const result = await runHistoryAlone({
    seed,
    also,
    listen,
    ...(only === undefined ? {} : { only }),
  });
  const { events, home, simulatedMs, failure } = result;
  const seconds = (simulatedMs / 1000).toFixed(0);
  terminal.print(`seed ${seed}: ${home}, ${events} events in ${seconds} simulated seconds`);
  terminal.print(failure === undefined ? "no violation" : failure.message);
  return failure === undefined ? exitCodes.ok : exitCodes.failed;
}

/** `--shrink`: the same violation with as little around it as possible. */
async function shrinkOne({ seed, also }: One, terminal: Terminal): Promise<number> {
  const { shrink } = await import("../../sim/harness/index.ts");
  const shrunk = await shrink(seed, also);
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
  terminal.print(`all of it: ${commandOf({ seed, also })} --steps ${places}`);
  return exitCodes.failed;
}

function readSteps(call: Call): ReadonlySet<number> | undefined {
  const text = call.string("steps");
  if (text === undefined) return undefined;
  if (!/^[0-9]{1,4}(,[0-9]{1,4})*$/.test(text))
    throw usageError(`--steps takes numbers with commas between them, not "${text}"`);
  return new Set(text.split(",").map(Number));
}

/** Names of the list, or "all": one that is not in it is part of every history anyway. */
async function readAlso(call: Call): Promise<readonly string[]> {
  const also = call.strings("also");
  if (also.length === 0) return also;
  const { notYet } = await import("../../sim/harness/index.ts");
  const names = ["all", ...notYet.map(({ name }) => name)];
  const unknown = also.find((name) => !names.includes(name));
  if (unknown === undefined) return also;
  throw usageError(`--also takes one of ${names.join("; ")}, not "${unknown}"`);
}

function readCount(call: Call, option: string): number | undefined {
  const text = call.string(option);
  if (text === undefined) return undefined;
  const count = Number(text);
  if (/^[0-9]{1,9}$/.test(text) && count > 0) return count;
  throw usageError(`--${option} takes a whole number above 0, not "${text}"`);
}
