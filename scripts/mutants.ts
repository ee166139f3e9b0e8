import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { runHistoryAlone } from "../src/sim/harness/index.ts";
import type { Mutant } from "../test/mutants/mutant.ts";
import { mutants } from "../test/mutants/mutants.ts";
import {
  type Catcher,
  type MarkedGuard,
  readGuardEntries,
  readLineEntries,
  readMarked,
  writeGuardEntries,
  writeLineEntries,
} from "../test/mutants/record.ts";
import { type Caught, guardMutant, runMutant } from "../test/mutants/run-mutant.ts";
import { type Broken, TestSearch } from "./mutants/test-search.ts";

// npm run mutants: breaks each guard (src/kernel/guard.ts) and each line of test/mutants/mutants.ts
// in turn and searches for what notices. What is recorded is tried first, then the tests near it,
// and, only with --seeds, simulated runs, one seed after the other; of a line that names the step
// which shows it, only seeds with that step.
//
//   --write       record what CI replays, each as soon as it is found
//   --new         only guards and lines for which nothing is recorded yet
//   --only TEXT   only guards with this in their ids, and lines with this in their names
//   --tests TEXT  search in test files with this in their paths, wherever the line is
//   --from N --seeds N   the first and the last seed to try
//   --threads N   so many at a time; as many as there are processors where nothing is said

const options = {
  write: { type: "boolean", default: false },
  new: { type: "boolean", default: false },
  only: { type: "string", default: "" },
  tests: { type: "string" },
  from: { type: "string", default: "1" },
  seeds: { type: "string" },
  threads: { type: "string", default: String(availableParallelism()) },
} as const;

interface Range {
  readonly from: number;
  readonly to: number;
}

/** Something to break, and how what notices is found and recorded. */
interface Target {
  readonly name: string;
  readonly isKnown: boolean;
  /** Says what notices; nothing if nothing does. */
  readonly find: () => Promise<string | undefined>;
}

export async function main(args: readonly string[]): Promise<number> {
  const { values } = parseArgs({ args: [...args], options });
  const from = Number(values.from);
  const range = values.seeds === undefined ? undefined : { from, to: Number(values.seeds) };
  const { guards, testFiles } = readMarked();
  const { tests = "", write: writes } = values;
  const files = testFiles.filter((file) => file.includes(tests));
  const testSearch = new TestSearch(files, { isWide: tests !== "" });
  const searching = { testSearch, range, writes };
  const targets = [...guardTargets(guards, searching), ...lineTargets(searching)];
  const wanted = targets
    .filter(({ name }) => name.includes(values.only))
    .filter(({ isKnown }) => !values.new || !isKnown);
  const work = wanted.values();
  let open = 0;
  const searchOn = async (): Promise<void> => {
    for (const target of work) if (!(await searchTold(target))) open += 1;
  };
  await Promise.all(Array.from({ length: Number(values.threads) }, searchOn));
  process.stdout.write(`${wanted.length - open} of ${wanted.length} caught\n`);
  return open === 0 ? 0 : 1;
}

/** Searches, and tells what was found and how long it took. */
async function searchTold({ name, find }: Target): Promise<boolean> {
  const sinceMs = performance.now();
  // A line that is no longer there is told, and the others are searched for all the same.
  const found = await find().catch((error: unknown) => {
    process.stdout.write(`${String(error).slice(0, 600)}\n`);
    return undefined;
  });
  const seconds = Math.round((performance.now() - sinceMs) / 1000);
  process.stdout.write(`${name} (${seconds} s): ${(found ?? "NOT CAUGHT").slice(0, 200)}\n`);
  return found !== undefined;
}

interface Searching {
  readonly testSearch: TestSearch;
  /** Where no test notices, these seeds are tried. */
  readonly range: Range | undefined;
  readonly writes: boolean;
}

function guardTargets(guards: readonly MarkedGuard[], searching: Searching): Target[] {
  const ids = new Set(guards.map(({ id }) => id));
  const known = readGuardEntries().filter(({ id }) => ids.has(id));
  const entries = new Map(known.map((entry) => [entry.id, entry]));
  return guards.map(({ id, file }) => ({
    name: id,
    isKnown: entries.has(id),
    find: async () => {
      const mutant = guardMutant(id);
      const broken = { name: mutant.name, files: [file], guard: id };
      const catcher = await searchAll({ mutant, broken, known: entries.get(id) }, searching);
      if (catcher === undefined) entries.delete(id);
      else entries.set(id, { id, ...catcher });
      if (searching.writes) writeGuardEntries(entries.values());
      return catcher && tellCatcher(catcher);
    },
  }));
}

function lineTargets(searching: Searching): Target[] {
  const entries = new Map(readLineEntries().map((entry) => [entry.name, entry]));
  return mutants.map((mutant) => ({
    name: mutant.name,
    isKnown: entries.has(mutant.name),
    find: async () => {
      const { name, edits } = mutant;
      const broken = { name, files: edits.map(({ file }) => file) };
      const catcher = await searchAll({ mutant, broken, known: entries.get(name) }, searching);
      if (catcher === undefined) entries.delete(name);
      else entries.set(name, { name, ...catcher });
      // In the order of the list; of lines that are gone nothing is kept.
      const ordered = mutants.flatMap((one) => entries.get(one.name) ?? []);
      if (searching.writes) writeLineEntries(ordered);
      return catcher && tellCatcher(catcher);
    },
  }));
}

interface Sought {
  readonly mutant: Mutant;
  readonly broken: Broken;
  readonly known: Catcher | undefined;
}

async function searchAll(
  { mutant, broken, known }: Sought,
  { testSearch, range }: Searching,
): Promise<Catcher | undefined> {
  const { test: knownTest, seed } = { test: undefined, seed: undefined, ...known };
  const test = mutant.inHistories ? undefined : await testSearch.find(broken, knownTest);
  if (test !== undefined) return { test };
  if (seed === undefined && range === undefined) return undefined;
  const caught = await search(mutant, range ?? { from: 1, to: 0 }, seed);
  return caught && { seed: caught.seed, failure: caught.failure.slice(0, 120) };
}

function tellCatcher(catcher: Catcher): string {
  if ("test" in catcher) return `${catcher.test.file}: ${catcher.test.name}`;
  return `seed ${catcher.seed}: ${catcher.failure}`;
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
