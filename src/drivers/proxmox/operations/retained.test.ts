import assert from "node:assert/strict";
import { it } from "node:test";
import { Bench } from "../../../hypervisor/testing/stage.ts";
import { simulatedStage } from "../testing/simulated-stage.ts";

it("a disk that says onDelete: Retain is not removed when its VM is gone and left it behind", async () => {
  const bench = new Bench(simulatedStage("9.2"));
  const claim = await bench.claim();
  const volume = bench.stage.behind.leaveVolume(claim.externalId);
  const { node, storage } = bench.stage;
  const disk = {
    id: volume,
    role: "Disk",
    proof: "Config",
    storage,
    state: "Attached",
    disk: "data",
  } as const;
  const remove = async (onDelete: "Retain" | "Delete"): Promise<string> => {
    const known = { ...claim, volumes: [{ ...disk, onDelete }] };
    const begun = await bench.begin({ kind: "removeVolume", claim: known, node, volume });
    if (begun.outcome === "task") await bench.end(begun.task);
    return begun.outcome;
  };
  assert.equal(await remove("Retain"), "refused");
  assert.equal(bench.stage.behind.volumes().length, 1);
  assert.notEqual(await remove("Delete"), "refused");
  assert.equal(bench.stage.behind.volumes().length, 0);
});

it("a volume that only bears the id of our VM in its name is not removed with it", async () => {
  const bench = new Bench(simulatedStage("9.2"));
  const claim = await bench.claim();
  const volume = bench.stage.behind.leaveVolume(claim.externalId);
  const { node } = bench.stage;
  const stranger = { ...claim, otherVolumes: [{ id: volume }] };
  const begun = await bench.begin({ kind: "removeVolume", claim: stranger, node, volume });
  assert.equal(begun.outcome, "refused");
  assert.equal(bench.stage.behind.volumes().length, 1);
});

it("another volume that got the name of ours since it was decided about is not removed", async () => {
  const bench = new Bench(simulatedStage("9.2"));
  const claim = await bench.claim();
  const volume = bench.stage.behind.leaveVolume(claim.externalId);
  const { node, storage } = bench.stage;
  const volumes = [{ id: volume, role: "Disk", storage, state: "Detached", disk: "data" } as const];
  const about = { claim: { ...claim, volumes }, node, volume, seen: { sizeBytes: 77 } } as const;
  const begun = await bench.begin({ kind: "removeVolume", ...about });
  assert.equal(begun.outcome, "changed");
  assert.equal(bench.stage.behind.volumes().length, 1);
});
