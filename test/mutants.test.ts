import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { plannedSteps, runHistory } from "../src/sim/harness/index.ts";
import { falls, mutants } from "./mutants/mutants.ts";
import { runMutant, shrinkMutant } from "./mutants/run-mutant.ts";

// cast: npm run mutants -- --write made it.
const recorded = JSON.parse(
  readFileSync(new URL("./mutants/seeds.json", import.meta.url), "utf8"),
) as readonly { readonly name: string; readonly seed: number }[];
const seedOf = new Map(recorded.map(({ name, seed }) => [name, seed]));

describe("a broken safety line is caught", () => {
  it("there are at least 25 of them, each with a name of its own", () => {
    assert.ok(mutants.length >= 25, `only ${mutants.length}`);
    assert.equal(new Set(mutants.map(({ name }) => name)).size, mutants.length);
  });

  it("and each line is in the code once, so that none is left behind when the code changes", () => {
    for (const { name, edits } of [...mutants, ...falls]) {
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
      const seed = seedOf.get(mutant.name);
      assert.ok(seed !== undefined, "no seed is recorded: run npm run mutants -- --write");
      const found = await runMutant(mutant, { from: seed, to: seed });
      assert.ok(found !== undefined, `seed ${seed} no longer notices: npm run mutants -- --write`);
      assert.match(found.failure, /^law (?!sound)/);
    });
  }

  it("and its history is made short: few steps of many are enough, and they are told", async () => {
    const [mutant] = mutants.filter(
      ({ name }) => name === "switches whatever stands under the id on and off",
    );
    assert.ok(mutant !== undefined);
    const left = await shrinkMutant(mutant, seedOf.get(mutant.name) ?? 0);
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

  it("and the same seeds break no law as the lines are", async () => {
    for (const seed of new Set(seedOf.values())) {
      const { failure } = await runHistory({ seed });
      assert.equal(failure, undefined, `seed ${seed}`);
    }
  });
});
