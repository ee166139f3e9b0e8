import { shrink } from "../../src/sim/harness/index.ts";

// Shrinks the history of argument 1 and prints what is left of it, as JSON.

const shrunk = await shrink(Number(process.argv[2]));
process.stdout.write(`${JSON.stringify(shrunk ?? null)}\n`);
