import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ClaimedMachine, Shape } from "../../hypervisor/index.ts";
import { Bench } from "../../hypervisor/testing/stage.ts";
import { simulatedStage } from "./testing/simulated-stage.ts";
import type { PveRequest } from "./wire/wire.ts";

const gibibyte = 1024 ** 3;

/** A bench that counts its calls, but for looking how far a task is. */
function counting(): { readonly bench: Bench; readonly counts: () => [number, number] } {
  const requests: PveRequest[] = [];
  const bench = new Bench(simulatedStage("9.2", (request) => requests.push(request)));
  return {
    bench,
    counts: () => {
      const own = requests.splice(0).filter(({ path }) => !/\/tasks\/[^/]+\/status$/.test(path));
      const reads = own.filter(({ method }) => method === "GET");
      return [own.length - reads.length, reads.length];
    },
  };
}

const shape: Shape = {
  name: "web",
  cpu: { cores: 2 },
  memory: { sizeBytes: gibibyte },
  disks: [{ name: "root" }],
  networks: [{ name: "lan", network: "vmbr0" }],
  cloudInit: { userName: "ada", storage: "local-zfs" },
};

/** What a controller asks for, from a present image to a running machine. */
async function make(bench: Bench, further: Shape = {}): Promise<ClaimedMachine> {
  const { stage, driver } = bench;
  const { node, storage, image } = stage;
  assert(image !== undefined);
  const drafted = await bench.proposed();
  const fill = { from: "volume", volume: image.volume } as const;
  const disk = { name: "root", storage, sizeBytes: 20 * gibibyte, fill };
  const whole = { ...shape, ...further };
  const draft = { claim: drafted, node, shape: whole, disks: [disk] };
  const preflight = await stage.settle(driver.preflight(draft));
  assert.deepEqual(preflight.findings, []);
  const { otherVolumes, notes } = preflight;
  assert(otherVolumes.length === 0 && notes !== undefined);
  const claim = { ...drafted, driver: notes };
  // A machine in the making is not running: its power is asked for at the end.
  const at = async (): Promise<{ node: string; version: string }> => {
    const seen = await bench.observe(claim, { withoutPower: true });
    assert(seen.at === "ours", JSON.stringify(seen));
    return { node, version: seen.machine.version };
  };
  await bench.succeed({ kind: "create", claim, node, shape: whole });
  const also = { ...(whole.cloudInit && { cloudInit: whole.cloudInit }) };
  await bench.succeed({
    kind: "addDisk",
    claim,
    at: await at(),
    disk,
    bootOrder: ["root"],
    also,
  });
  const { sizeBytes } = disk;
  await bench.succeed({ kind: "grow", claim, at: await at(), disk: "root", sizeBytes });
  await bench.succeed({ kind: "powerOn", claim, at: await at() });
  assert.equal((await bench.ours(claim)).power, "Running");
  return claim;
}

describe("the price", () => {
  it("of a machine from a present image is at most 5 writes and 7 reads", async () => {
    const { bench, counts } = counting();
    await bench.stage.settle(bench.driver.inventory());
    await make(bench);
    counts();
    const claim = await make(bench);
    assert.deepEqual(counts(), [4, 7]);
    assert.equal((await bench.ours(claim)).cloudInitDrive?.slot, "ide2");
  });

  it("of the first one is two reads more: whether the image and the bridge are there", async () => {
    const { bench, counts } = counting();
    await bench.stage.settle(bench.driver.inventory());
    counts();
    await make(bench);
    assert.deepEqual(counts(), [4, 9]);
  });

  it("of one with a seed of ours is at most 7 writes and 8 reads", async () => {
    const { bench, counts } = counting();
    await bench.stage.settle(bench.driver.inventory());
    await make(bench);
    counts();
    const { node, discStorage: storage } = bench.stage;
    const claim = await bench.proposed();
    const content = new Uint8Array(2048);
    const fileName = `berth-seed-${claim.identity}-0.iso`;
    await bench.succeed({ kind: "putSeed", claim, node, storage, fileName, content });
    const seed = { state: "Inserted", storage, fileName } as const;
    await make(bench, { cloudInit: { seed } });
    assert.deepEqual(counts(), [5, 8]);
  });

  it("of looking at a machine is two reads, and one without its power", async () => {
    const { bench, counts } = counting();
    const claim = await bench.machine();
    counts();
    await bench.ours(claim);
    assert.deepEqual(counts(), [0, 2]);
    await bench.observe(claim, { withoutPower: true });
    assert.deepEqual(counts(), [0, 1]);
  });

  it("of destroying a machine that is off is one write and nine reads", async () => {
    const { bench, counts } = counting();
    await bench.stage.settle(bench.driver.inventory());
    const made = await make(bench);
    await bench.succeed({
      kind: "powerOff",
      claim: made,
      at: await bench.at(made),
      mode: "Forced",
    });
    const claim = await bench.bound(made);
    const volumes = claim.volumes?.map(({ id }) => id) ?? [];
    const at = await bench.at(claim);
    counts();
    await bench.succeed({ kind: "destroy", claim, at, volumes });
    assert.deepEqual(await bench.observe(claim), { at: "absent" });
    const left = await bench.stage.settle(bench.driver.leftovers(claim));
    assert.deepEqual(left, { ok: true, value: [] });
    // The mark and its snapshots; whether the storage has our volumes under their names; the proof
    // that it is gone, three; and what it left, three.
    assert.deepEqual(counts(), [1, 9]);
  });
});
