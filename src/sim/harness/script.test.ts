import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Script } from "./script.ts";
import type { Trouble } from "./trouble.ts";

const strike = (): void => undefined;
const menu: readonly Trouble[] = [
  { name: "declare", weight: 6, isAlways: true, strike },
  { name: "edit", weight: 6, isAlways: true, strike },
  ...["crash", "cut off", "lose replies", "lose requests"].map((name) => {
    return { name, weight: 2, strike };
  }),
];
const added: Trouble = { name: "something new", weight: 3, strike };
const seeds = Array.from({ length: 300 }, (_, index) => 40_000_000 + index);

function stepsOf(seed: number, troubles: readonly Trouble[]): string[] {
  const script = new Script(seed, troubles);
  return Array.from({ length: script.least }, (_, index) => script.trouble(index).name);
}

function countOf(names: readonly string[], name: string): number {
  return names.filter((one) => one === name).length;
}

describe("a script", () => {
  it("keeps every step when the menu has one more trouble, except those that this one takes", () => {
    let taken = 0;
    for (const seed of seeds) {
      const [before, after] = [stepsOf(seed, menu), stepsOf(seed, [added, ...menu])];
      taken += countOf(after, added.name);
      const kept = after.map((name, index) => (name === added.name ? before[index] : name));
      assert.deepEqual(kept, before, `seed ${seed}`);
    }
    assert.ok(taken > seeds.length, `the new one came ${taken} times`);
  });

  it("does not ask where in the menu a trouble is", () => {
    for (const seed of seeds)
      assert.deepEqual(stepsOf(seed, menu.toReversed()), stepsOf(seed, menu));
  });

  it("lets a trouble come as often as its weight says", () => {
    const always = menu.map((trouble) => ({ ...trouble, isAlways: true }));
    const all = seeds.flatMap((seed) => stepsOf(seed, always).slice(3));
    for (const { name, weight } of always) {
      const [share, wanted] = [countOf(all, name) / all.length, weight / 20];
      assert.ok(Math.abs(share - wanted) < 0.03, `${name}: ${share} and not ${wanted}`);
    }
  });

  it("allows other troubles to other seeds", () => {
    const having = seeds.filter((seed) => stepsOf(seed, menu).includes("crash")).length;
    assert.ok(having > seeds.length * 0.3 && having < seeds.length * 0.8, `${having} have it`);
  });
});
