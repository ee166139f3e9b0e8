import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { runHistory } from "../src/sim/harness/index.ts";
import { mutants } from "./mutants/mutants.ts";
import { runMutant } from "./mutants/run-mutant.ts";

// cast: npm run mutants -- --write made it.
const recorded = JSON.parse(
  readFileSync(new URL("./mutants/seeds.json", import.meta.url), "utf8"),
) as readonly { readonly name: string; readonly seed: number }[];
const seedOf = new Map(recorded.map(({ name, seed }) => [name, seed]));

describe("a broken safety line is caught", () => {
  for (const mutant of mutants) {
    it(mutant.name, async () => {
      const seed = seedOf.get(mutant.name);
      assert.ok(seed !== undefined, "no seed is recorded: run npm run mutants -- --write");
      const found = await runMutant(mutant, { from: seed, to: seed });
      assert.ok(found !== undefined, `seed ${seed} no longer notices: npm run mutants -- --write`);
      assert.match(found.failure, /^law \d/);
    });
  }

  it("and the same seeds break no law as the lines are", async () => {
    for (const seed of new Set(seedOf.values())) {
      const { failure } = await runHistory({ seed });
      assert.equal(failure, undefined, `seed ${seed}`);
    }
  });
});
