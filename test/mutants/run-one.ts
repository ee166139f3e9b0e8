import { plannedSteps, runHistoryAlone } from "../../src/sim/harness/index.ts";

// Runs seeds from argument 1 to argument 2 and prints the first that breaks a law, as JSON. What
// else goes wrong in a broken program proves nothing, nor does it prove anything that the program
// falls over, whatever law that breaks later. With argument 3, the name of a step, only seeds that
// surely have it.

const [first = 1, last = first] = process.argv.slice(2, 4).map(Number);
const [, , , , step] = process.argv;
let found: { seed: number; failure: string } | undefined;
for (let seed = first; seed <= last && found === undefined; seed++) {
  if (step !== undefined && !plannedSteps(seed).includes(step)) continue;
  const { failure } = await runHistoryAlone({ seed });
  if (failure !== undefined && /^law (?!sound)/.test(failure.message)) {
    found = { seed, failure: failure.message };
  }
}
process.stdout.write(`${JSON.stringify(found ?? null)}\n`);
