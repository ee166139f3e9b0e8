import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ClaimedMachine } from "../../../hypervisor/index.ts";
import { Bench } from "../../../hypervisor/testing/stage.ts";
import { releases } from "../../../sim/index.ts";
import { simulatedStage } from "../testing/simulated-stage.ts";

/** Each a moment in which the worker may die; together they hit every step of it. */
const momentsMs = Array.from({ length: 40 }, (_, index) => index * 5);

describe("a hand-over that is cut short", () => {
  for (const release of releases) {
    it(`loses nothing on Proxmox VE ${release}, whenever its worker dies`, async () => {
      const ends = new Set<string>();
      for (const diesAfterMs of momentsMs) ends.add(await handOver(release, diesAfterMs));
      // It has been cut short before, after and in between.
      assert.equal(ends.size, 3, [...ends].join("; "));
    });
  }
});

async function handOver(release: (typeof releases)[number], diesAfterMs: number): Promise<string> {
  const bench = new Bench(simulatedStage(release));
  const { behind } = bench.stage;
  const keeper = await bench.shell();
  const claim = await bench.bound(await bench.machine());
  const [root] = claim.volumes ?? [];
  assert(root !== undefined);
  const to = { claim: keeper, at: await bench.at(keeper), disk: "data" };
  const at = await bench.at(claim);
  const begun = await bench.begin({ kind: "handOver", claim, at, volume: root.id, to });
  assert(begun.outcome === "task", JSON.stringify(begun));
  await bench.stage.pass(diesAfterMs);
  behind.kill(begun.task);
  await bench.end(begun.task);
  assert.equal(behind.volumes().length, 1);
  // The receiver's Claim says that the volume has to stay, from before the hand-over.
  const volumes = [{ ...root, disk: "data", onDelete: "Retain" as const }];
  const left = await bench.stage.settle(bench.driver.leftovers({ ...keeper, volumes }));
  assert(left.ok);
  for (const { volume, proof, node } of left.value) {
    assert.notEqual(proof, "TaskLogged");
    const removal = { kind: "removeVolume", claim: { ...keeper, volumes }, node, volume } as const;
    assert.equal((await bench.begin(removal)).outcome, "refused");
  }
  assert.equal(behind.volumes().length, 1);
  const isGiven = (await bench.ours(keeper)).disks.length > 0;
  const isKept = (await bench.ours(claim)).disks.length > 0;
  await finish(bench, { claim, keeper }, root.id);
  return `given: ${isGiven}, kept: ${isKept}, left: ${left.value.length}`;
}

/** The same again brings it home, wherever it was left. */
async function finish(
  bench: Bench,
  { claim, keeper }: { readonly claim: ClaimedMachine; readonly keeper: ClaimedMachine },
  volume: string,
): Promise<void> {
  const to = { claim: keeper, at: await bench.at(keeper), disk: "data" };
  const at = await bench.at(claim);
  const begun = await bench.begin({ kind: "handOver", claim, at, volume, to });
  assert(begun.outcome === "task" || begun.outcome === "done", JSON.stringify(begun));
  if (begun.outcome === "task") await bench.end(begun.task);
  const [disk] = (await bench.ours(keeper)).disks;
  assert.equal(disk?.name, "data");
  const [only = "", ...others] = bench.stage.behind.volumes();
  assert.deepEqual([disk?.volume.endsWith(only), others.length], [true, 0]);
  const again = { ...to, at: await bench.at(keeper) };
  const last = { kind: "handOver", claim, at: await bench.at(claim), volume, to: again } as const;
  assert.deepEqual(await bench.begin(last), { outcome: "done" });
}
