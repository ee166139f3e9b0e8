import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { describe, it } from "node:test";
import { plannedSteps, runHistory } from "../src/sim/harness/index.ts";
import type { Mutant } from "./mutants/mutant.ts";
import { falls, mutants } from "./mutants/mutants.ts";
import { type Catcher, readGuardEntries, readLineEntries, readMarked } from "./mutants/record.ts";
import { guardMutant, runMutant, shrinkMutant } from "./mutants/run-mutant.ts";
import { runTests } from "./mutants/test-run.ts";

/** So many are tried where the seed that is recorded does not notice any more. */
const firstSeeds = 12;

/** A line that the first histories notice. */
const shrunk = "gives every machine the same identity";

const entries = readGuardEntries();
const lines = new Map(readLineEntries().map((entry) => [entry.name, entry]));

/** Does all of it, as many at a time as there are cores. */
async function each<T>(items: Iterable<T>, work: (item: T) => Promise<void>): Promise<void> {
  const left = Iterator.from(items);
  const workOn = async (): Promise<void> => {
    for (const item of left) await work(item);
  };
  await Promise.all(Array.from({ length: availableParallelism() }, workOn));
}

/** Why what is broken was not noticed; undefined if it was. */
async function missedBy(mutant: Mutant, catcher: Catcher): Promise<string | undefined> {
  if ("seed" in catcher) {
    const { seed } = catcher;
    if ((await runMutant(mutant, { from: seed, to: seed })) !== undefined) return undefined;
    // What a seed means changes with the histories. Then others of the first ones notice.
    const found = await runMutant(mutant, { from: 1, to: firstSeeds });
    if (found === undefined) return `${mutant.name}: no seed up to ${firstSeeds} notices`;
    const { failure } = await runHistory({ seed: found.seed });
    return failure && `${mutant.name}: seed ${found.seed} fails as the line is`;
  }
  const { file, name } = catcher.test;
  const ends = await runTests({ file, names: [name], broken: mutant.name });
  const end = ends.find((one) => one.name === name)?.end ?? "is not there, or never ends";
  return end === "refuted" ? undefined : `${mutant.name}: ${file}: "${name}" ${end}`;
}

/** The tests among them that do not pass as the code is. */
async function failing(catchers: readonly Catcher[]): Promise<string[]> {
  const tests = catchers.flatMap((catcher) => ("test" in catcher ? [catcher.test] : []));
  const byFile = Map.groupBy(tests, ({ file }) => file);
  const failed: string[] = [];
  await each(byFile, async ([file, named]) => {
    const names = [...new Set(named.map(({ name }) => name))];
    const ends = await runTests({ file, names });
    const passed = new Set(ends.filter(({ end }) => end === "passed").map(({ name }) => name));
    failed.push(...names.filter((name) => !passed.has(name)).map((name) => `${file}: ${name}`));
  });
  return failed;
}

describe("a broken guard is caught", () => {
  it("there are at least 120 of them, each with what notices", () => {
    const { guards } = readMarked();
    assert.ok(guards.length >= 120, `only ${guards.length}`);
    const ids = guards.map(({ id }) => id).toSorted();
    assert.deepEqual(entries.map(({ id }) => id).toSorted(), ids);
  });

  it("each by the test or the seed that is recorded for it", async (test) => {
    const missed: string[] = [];
    await each(entries, async (entry) => {
      const why = await missedBy(guardMutant(entry.id), entry);
      if (why !== undefined) missed.push(why);
    });
    test.diagnostic(`${entries.length} guards were broken, one at a time`);
    assert.deepEqual(missed, [], "npm run mutants -- --only ID --write");
  });

  it("and these tests pass as the guards are", async () => {
    assert.deepEqual(await failing(entries), []);
  });
});

describe("a broken safety line is caught", () => {
  it("there are at least 25 of them, each with a name of its own", () => {
    assert.ok(mutants.length >= 25, `only ${mutants.length}`);
    assert.equal(new Set(mutants.map(({ name }) => name)).size, mutants.length);
  });

  it("and each line is in the code once, so that none is left behind when the code changes", () => {
    const ids = new Set(readMarked().guards.map(({ id }) => id));
    for (const { name, guards = [], edits } of [...mutants, ...falls]) {
      for (const id of guards) assert.ok(ids.has(id), `${name}: no guard ${id}`);
      for (const { file, find } of edits) {
        const text = readFileSync(new URL(`../${file}`, import.meta.url), "utf8");
        assert.equal(text.split(find).length, 2, `${name}: ${file}`);
      }
    }
  });

  it("and a step that is named for the search is one that histories have", () => {
    const seeds = Array.from({ length: 100 }, (_, index) => index + 1);
    const planned = new Set(seeds.flatMap((seed) => plannedSteps(seed)));
    for (const { name, step } of mutants) {
      assert.ok(step === undefined || planned.has(step), `${name}: ${step}`);
    }
  });

  for (const mutant of mutants) {
    it(mutant.name, async () => {
      const entry = lines.get(mutant.name);
      assert.ok(entry !== undefined, "nothing is recorded: run npm run mutants -- --write");
      const missed = await missedBy(mutant, entry);
      assert.equal(missed, undefined, "npm run mutants -- --only NAME --write");
    });
  }

  it("by a simulated run where only that counts", () => {
    const names = mutants.filter(({ inHistories }) => inHistories).map(({ name }) => name);
    assert.ok(names.length >= 8, `only ${names.length}`);
    for (const name of names) assert.ok("seed" in (lines.get(name) ?? {}), name);
  });

  it("and its history is made short: few steps of many are enough, and they are told", async () => {
    const [mutant] = mutants.filter(({ name }) => name === shrunk);
    assert.ok(mutant !== undefined);
    // No seed is recorded for this: what a seed means changes with every change of the histories.
    const found = await runMutant(mutant, { from: 1, to: 50 });
    assert.ok(found !== undefined, "nothing was caught");
    const left = await shrinkMutant(mutant, found.seed);
    assert.ok(left !== undefined, "nothing was caught");
    assert.ok(left.steps.length * 2 <= left.stepsBefore, `${left.steps.length} steps are left`);
    assert.ok(left.events < left.eventsBefore);
    assert.ok(left.trace.some((line) => line.includes("declares")));
    assert.ok(left.trace.every((line) => !line.includes("/cluster/resources: 200")));
  });

  for (const fall of falls) {
    it(`and one that ${fall.name} is told as that, made short, and proves nothing`, async () => {
      assert.equal(await runMutant(fall, { from: 1, to: 1 }), undefined);
      const left = await shrinkMutant(fall, 1);
      assert.equal(left?.failure.law, "sound");
      assert.ok(left.steps.length * 2 <= left.stepsBefore, `${left.steps.length} steps are left`);
    });
  }

  it("and the same seeds break no law as the lines are, and the same tests pass", async () => {
    const seeds = [...lines.values()].flatMap((entry) => ("seed" in entry ? [entry.seed] : []));
    for (const seed of new Set(seeds)) {
      const { failure } = await runHistory({ seed });
      assert.equal(failure, undefined, `seed ${seed}`);
    }
    assert.deepEqual(await failing([...lines.values()]), []);
  });
});
