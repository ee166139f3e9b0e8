import assert from "node:assert/strict";
import type { Advanced, Fence } from "../contract.ts";
import type { EpochView, ListedEpoch, WrittenEpoch } from "../epoch.ts";
import type { Bench, Laws } from "./stage.ts";

const installation = "7f3f3b52-90b4-4b6b-9d39-0c9f5a4be001";
const other = "7f3f3b52-90b4-4b6b-9d39-0c9f5a4be002";
const open: Fence = { mayWrite: () => true };

/** That of all runs of an installation one at most may act, and that every other one can see it. */
export const epochs: Laws = {
  "shows no epoch before one was written, and then who wrote it": async (bench) => {
    assert.equal(await shown(bench), undefined);
    await succeed(bench, undefined, run("first", 1));
    assert.deepEqual(await shown(bench), run("first", 1));
    await succeed(bench, 1, run("second", 2));
    assert.deepEqual(await shown(bench), run("second", 2));
  },

  "lists the newest epoch with everything else": async (bench) => {
    assert.deepEqual(await listed(bench), []);
    await succeed(bench, undefined, run("first", 1));
    await succeed(bench, 1, run("second", 2));
    assert.deepEqual(await listed(bench), [{ installation, number: 2 }]);
  },

  "lets one of several runs advance the same epoch": async (bench) => {
    await succeed(bench, undefined, run("first", 1));
    await succeed(bench, 1, run("second", 2));
    assert.equal((await advance(bench, 1, run("late", 2))).outcome, "changed");
    assert.equal((await advance(bench, undefined, run("later", 1))).outcome, "changed");
    assert.equal((await advance(bench, 5, run("wrong", 6))).outcome, "changed");
    assert.deepEqual(await shown(bench), run("second", 2));
    await succeed(bench, 2, run("third", 3));
    assert.equal((await advance(bench, 1, run("late", 2))).outcome, "changed");
    assert.deepEqual(await shown(bench), run("third", 3));
    assert.deepEqual(await listed(bench), [{ installation, number: 3 }]);
  },

  "advances an epoch once, however often the same run asks": async (bench) => {
    for (let times = 0; times < 3; times++) await succeed(bench, undefined, run("first", 1));
    assert.deepEqual(await shown(bench), run("first", 1));
  },

  "settles an advance whose reply was lost by asking again": async (bench) => {
    bench.stage.behind.loseNext("reply");
    const begun = await advance(bench, undefined, run("first", 1));
    assert.ok(begun.outcome === "done" || begun.outcome === "unknown", JSON.stringify(begun));
    await succeed(bench, undefined, run("first", 1));
    assert.equal((await advance(bench, undefined, run("second", 1))).outcome, "changed");
  },

  "advances an epoch when the first request was lost": async (bench) => {
    bench.stage.behind.loseNext("request");
    const begun = await advance(bench, undefined, run("first", 1));
    assert.notEqual(begun.outcome, "done");
    assert.equal(await shown(bench), undefined);
    await succeed(bench, undefined, run("first", 1));
  },

  "puts an epoch that went missing back under a number of its own": async (bench) => {
    await succeed(bench, undefined, run("again", 7));
    assert.deepEqual(await shown(bench), run("again", 7));
  },

  "writes no epoch once it may not write any more": async (bench) => {
    const change = { installation, to: run("first", 1) };
    const closed = { mayWrite: (): boolean => false };
    const fenced = await bench.stage.settle(bench.driver.advance(change, closed));
    assert.deepEqual(fenced, { outcome: "fenced" });
    assert.equal(await shown(bench), undefined);
  },

  "keeps the epochs of two installations apart": async (bench) => {
    await succeed(bench, undefined, run("first", 4));
    assert.equal(await shown(bench, other), undefined);
    const change = { installation: other, to: run("theirs", 1) };
    const begun = await bench.stage.settle(bench.driver.advance(change, open));
    assert.equal(begun.outcome, "done");
    assert.deepEqual(await shown(bench), run("first", 4));
    assert.equal((await listed(bench)).length, 2);
  },

  "an epoch is neither a VM nor a volume": async (bench) => {
    await succeed(bench, undefined, run("first", 1));
    const survey = await bench.stage.settle(bench.driver.survey([]));
    assert.ok(survey.ok);
    const { machines, volumes, files } = survey.value;
    assert.deepEqual([...machines, ...volumes, ...files], []);
  },

  "knows nothing of an epoch when nobody answers": async (bench) => {
    await succeed(bench, undefined, run("first", 1));
    bench.stage.behind.cutOff();
    const seen = await bench.stage.settle(bench.driver.epoch(installation));
    assert.equal(seen.ok, false);
    const begun = await advance(bench, 1, run("second", 2));
    assert.ok(begun.outcome === "refused" || begun.outcome === "unknown", begun.outcome);
  },
};

function run(name: string, number: number): WrittenEpoch {
  return { number, run: name, at: "2026-11-16T12:00:00Z", place: "host one" };
}

async function shown(bench: Bench, of = installation): Promise<EpochView | undefined> {
  const answer = await bench.stage.settle(bench.driver.epoch(of));
  assert(answer.ok, JSON.stringify(answer));
  if (answer.value === undefined) return undefined;
  const { shownBy: _drivers, ...view } = answer.value;
  return view;
}

async function listed(bench: Bench): Promise<readonly ListedEpoch[]> {
  const answer = await bench.stage.settle(bench.driver.inventory());
  assert(answer.ok, JSON.stringify(answer));
  assert.ok(answer.value.epochs, "the inventory has no epochs");
  return answer.value.epochs;
}

async function advance(
  bench: Bench,
  from: number | undefined,
  to: WrittenEpoch,
): Promise<Advanced> {
  return await bench.stage.settle(bench.driver.advance({ installation, from, to }, open));
}

async function succeed(bench: Bench, from: number | undefined, to: WrittenEpoch): Promise<void> {
  const begun = await advance(bench, from, to);
  assert.equal(begun.outcome, "done", JSON.stringify(begun));
}
