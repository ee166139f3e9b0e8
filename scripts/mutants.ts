import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { mutants } from "../test/mutants/mutants.ts";
import { type Caught, runMutant } from "../test/mutants/run-mutant.ts";

// npm run mutants [-- --write] [-- --new] [-- --seeds N]: breaks each safety line of
// test/mutants/mutants.ts in turn and searches for a history that notices. --write records the
// seeds that CI replays; --new searches only for lines that have none.

const seedsDefault = 400;
const recordFile = join(import.meta.dirname, "..", "test", "mutants", "seeds.json");

interface Recorded extends Caught {
  readonly name: string;
}

export async function main(args: readonly string[]): Promise<number> {
  const at = args.indexOf("--seeds");
  const last = at < 0 ? seedsDefault : Number(args[at + 1]);
  const known = args.includes("--new") ? readRecorded() : [];
  const found: Recorded[] = [];
  for (const mutant of mutants) {
    const { name } = mutant;
    const old = known.find((recorded) => recorded.name === name);
    const caught = old ?? (await runMutant(mutant, { from: 1, to: last }));
    if (old === undefined) process.stdout.write(`${name}: ${told(caught)}\n`);
    if (caught !== undefined) {
      found.push({ name, seed: caught.seed, failure: caught.failure.slice(0, 120) });
    }
  }
  if (args.includes("--write")) writeFileSync(recordFile, `${JSON.stringify(found, null, 2)}\n`);
  process.stdout.write(`${found.length} of ${mutants.length} caught\n`);
  return found.length === mutants.length ? 0 : 1;
}

function told(caught: Caught | undefined): string {
  if (caught === undefined) return "NOT CAUGHT";
  return `seed ${caught.seed}: ${caught.failure}`.slice(0, 160);
}

function readRecorded(): readonly Recorded[] {
  // cast: --write made it; of lines that are gone nothing is kept.
  return JSON.parse(readFileSync(recordFile, "utf8")) as readonly Recorded[];
}
