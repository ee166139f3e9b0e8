import assert from "node:assert/strict";
import { it } from "node:test";
import { systemRandom } from "../../app/index.ts";
import { anyFirstSeed } from "../../sim/harness/index.ts";
import { firstSeed } from "./first-seed.ts";

function choose(from?: number): { seed: number; lines: string[] } {
  const lines: string[] = [];
  const any = (): number => anyFirstSeed(systemRandom);
  const seed = firstSeed({ from, any, print: (line) => lines.push(line) });
  return { seed, lines };
}

it("berth sim run chooses its seeds at random by default, and prints the first", () => {
  const chosen = Array.from({ length: 8 }, () => choose());
  for (const { seed, lines } of chosen) {
    assert.deepEqual(lines, [`seeds from ${seed} on, chosen at random`]);
  }
  assert.ok(new Set(chosen.map(({ seed }) => seed)).size > 1);
});

it("berth sim run runs the seeds that it is told", () => {
  assert.deepEqual(choose(7), { seed: 7, lines: [] });
});
