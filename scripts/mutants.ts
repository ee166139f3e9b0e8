import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { mutants } from "../test/mutants/mutants.ts";
import { type Caught, runMutant } from "../test/mutants/run-mutant.ts";

// npm run mutants [-- --write] [-- --seeds N]: breaks each safety line of test/mutants/mutants.ts
// in turn and searches for a history that notices. --write records the seeds that CI replays.

const seedsDefault = 400;
const recordFile = join(import.meta.dirname, "..", "test", "mutants", "seeds.json");

export async function main(args: readonly string[]): Promise<number> {
  const at = args.indexOf("--seeds");
  const last = at < 0 ? seedsDefault : Number(args[at + 1]);
  const found: { name: string; seed: number; failure: string }[] = [];
  for (const mutant of mutants) {
    const caught: Caught | undefined = await runMutant(mutant, { from: 1, to: last });
    const what = caught === undefined ? "NOT CAUGHT" : `seed ${caught.seed}: ${caught.failure}`;
    process.stdout.write(`${mutant.name}: ${what.slice(0, 160)}\n`);
    if (caught !== undefined) {
      found.push({ name: mutant.name, seed: caught.seed, failure: caught.failure.slice(0, 120) });
    }
  }
  if (args.includes("--write")) writeFileSync(recordFile, `${JSON.stringify(found, null, 2)}\n`);
  process.stdout.write(`${found.length} of ${mutants.length} caught\n`);
  return found.length === mutants.length ? 0 : 1;
}
