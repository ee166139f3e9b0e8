import { readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { runHistoryAlone } from "../src/sim/harness/index.ts";
import { mutants, type Mutant } from "../test/mutants/mutants.ts";
import { type Caught, runMutant } from "../test/mutants/run-mutant.ts";

// npm run mutants: breaks each safety line of test/mutants/mutants.ts in turn and searches for a
// history that notices. The seed that is recorded is tried first, then one after the other; of a
// line that names the step which shows it, only seeds with that step.
//
//   --write       record the seeds that CI replays, each as soon as it is found
//   --new         only lines that have no seed yet
//   --only TEXT   only lines with this in their names
//   --from N --seeds N   where to begin, and the last seed to try
//   --threads N   so many at a time; as many as there are processors where nothing is said

const recordFile = join(import.meta.dirname, "..", "test", "mutants", "seeds.json");

const options = {
  write: { type: "boolean", default: false },
  new: { type: "boolean", default: false },
  only: { type: "string", default: "" },
  from: { type: "string", default: "1" },
  seeds: { type: "string", default: "400" },
  threads: { type: "string", default: String(availableParallelism()) },
} as const;

interface Recorded extends Caught {
  readonly name: string;
}

interface Range {
  readonly from: number;
  readonly to: number;
}

export async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({ args: [...args], options });
  const range = { from: Number(values.from), to: Number(values.seeds) };
  const known = new Map(readRecorded().map((recorded) => [recorded.name, recorded]));
  const wanted = mutants
    .filter(({ name }) => name.includes(values.only))
    .filter(({ name }) => !values.new || !known.has(name));
  const work = wanted.values();
  const searchOn = async (): Promise<void> => {
    for (const mutant of work) {
      const caught = await searchTold(mutant, { range, seed: known.get(mutant.name)?.seed });
      if (caught === undefined) known.delete(mutant.name);
      else known.set(mutant.name, { name: mutant.name, ...caught });
      if (values.write) writeRecorded(known);
    }
  };
  await Promise.all(Array.from({ length: Number(values.threads) }, searchOn));
  const open = wanted.filter(({ name }) => !known.has(name)).length;
  process.stdout.write(`${wanted.length - open} of ${wanted.length} caught\n`);
  return open === 0 ? 0 : 1;
}

/** Searches, and tells what was found and how long it took. */
async function searchTold(
  mutant: Mutant,
  { range, seed }: { readonly range: Range; readonly seed: number | undefined },
): Promise<Caught | undefined> {
  const sinceMs = performance.now();
  // A line that is no longer there is told, and the others are searched for all the same.
  const found = await search(mutant, range, seed).catch((error: unknown) => {
    process.stdout.write(`${String(error).slice(0, 600)}\n`);
    return undefined;
  });
  const seconds = Math.round((performance.now() - sinceMs) / 1000);
  const told = found === undefined ? "NOT CAUGHT" : tellCaught(found);
  process.stdout.write(`${mutant.name} (${seconds} s): ${told}\n`);
  return found && { seed: found.seed, failure: found.failure.slice(0, 120) };
}

/** The first that notices and that breaks no law as the line is. */
async function search(
  mutant: Mutant,
  { from, to }: Range,
  recorded: number | undefined,
): Promise<Caught | undefined> {
  if (recorded !== undefined) {
    const caught = await runMutant(mutant, { from: recorded, to: recorded });
    if (caught !== undefined && (await isClean(recorded))) return caught;
  }
  const { step } = mutant;
  let next = from;
  for (;;) {
    const caught = next > to ? undefined : await runMutant(mutant, { from: next, to, step });
    if (caught === undefined || (await isClean(caught.seed))) return caught;
    next = caught.seed + 1;
  }
}

async function isClean(seed: number): Promise<boolean> {
  const { failure } = await runHistoryAlone({ seed });
  if (failure !== undefined) process.stdout.write(`seed ${seed} as it is: ${failure.message}\n`);
  return failure === undefined;
}

function tellCaught({ seed, failure }: Caught): string {
  return `seed ${seed}: ${failure}`.slice(0, 160);
}

function readRecorded(): readonly Recorded[] {
  // cast: --write made it.
  return JSON.parse(readFileSync(recordFile, "utf8")) as readonly Recorded[];
}

/** In the order of the list; of lines that are gone nothing is kept. */
function writeRecorded(known: ReadonlyMap<string, Recorded>): void {
  const ordered = mutants.flatMap(({ name }) => known.get(name) ?? []);
  writeFileSync(recordFile, `${JSON.stringify(ordered, null, 2)}\n`);
}
