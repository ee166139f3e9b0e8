import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { shapeDifferences } from "../differences.ts";
import type { Operation } from "../operation.ts";
import type { Laws } from "./stage.ts";

const mebibyte = 1024 ** 2;
const gibibyte = 1024 ** 3;

/** That the work is done, and done once. */
export const working: Laws = {
  "says who the system is, and the same each time": async ({ driver, stage }) => {
    const first = await stage.settle(driver.system());
    const second = await stage.settle(driver.system());
    assert(first.ok && second.ok, JSON.stringify(first));
    assert.notEqual(first.value.systemId, "");
    assert.equal(first.value.systemId, second.value.systemId);
    assert(first.value.capabilities.includes("CreateBlank"));
    assert.deepEqual(first.value.findings, []);
  },

  "proposes an id under which nothing stands, and sees nothing there": async (bench) => {
    const claim = await bench.claim();
    assert.equal(bench.stage.behind.machines().includes(claim.externalId), false);
    assert.deepEqual(await bench.observe(claim), { at: "absent" });
  },

  "makes a machine from an image, as large as asked for, and starts it": async (bench) => {
    const { stage, driver } = bench;
    const { image, storage } = stage;
    assert(image !== undefined, "this hypervisor has no image to test with");
    const shape = {
      name: "web",
      cpu: { cores: 2 },
      memory: { sizeBytes: gibibyte },
      networks: [{ name: "lan", network: stage.network }],
    };
    const claim = await bench.shell(shape);
    const fill = { from: "volume", volume: image.volume } as const;
    const disk = { name: "root", storage, fill };
    const first = await bench.at(claim);
    await bench.succeed({ kind: "addDisk", claim, at: first, disk, bootOrder: ["root"] });
    const sizeBytes = 20 * gibibyte;
    const second = await bench.at(claim);
    await bench.succeed({ kind: "grow", claim, at: second, disk: "root", sizeBytes });
    await bench.succeed({ kind: "powerOn", claim, at: await bench.at(claim) });
    const machine = await bench.ours(claim);
    assert.equal(machine.power, "Running");
    assert.equal(machine.disks.find(({ name }) => name === "root")?.sizeBytes, sizeBytes);
    assert.deepEqual(shapeDifferences(driver.fit(shape).shape, machine.shape), []);
    assert.deepEqual(stage.behind.machines(), [claim.externalId]);
  },

  "copies the disk of another machine": async (bench) => {
    const { storage } = bench.stage;
    const source = await bench.machine();
    const claim = await bench.shell();
    const fill = { from: "machine", externalId: source.externalId } as const;
    const at = await bench.at(claim);
    await bench.succeed({ kind: "addDisk", claim, at, disk: { name: "root", storage, fill } });
    const [copy] = (await bench.ours(claim)).disks;
    const [original] = (await bench.ours(source)).disks;
    assert.equal(copy?.sizeBytes, original?.sizeBytes);
    assert.notEqual(copy?.volume, original?.volume);
  },

  "finds its machine wherever it is": async (bench) => {
    const { node: _, ...claim } = await bench.machine();
    assert.equal((await bench.ours(claim)).node, bench.stage.node);
  },

  "shows values that survive being stored": async (bench) => {
    const claim = await bench.machine();
    const seen = await bench.observe(claim);
    assert.deepEqual(JSON.parse(JSON.stringify(seen)), seen);
    const { driver, stage } = bench;
    for (const value of [
      await stage.settle(driver.inventory()),
      await stage.settle(driver.leftovers(claim)),
      await stage.settle(driver.recall(claim, 0)),
    ]) {
      assert.deepEqual(JSON.parse(JSON.stringify(value)), value);
    }
  },

  "changes what is asked for and nothing else": async (bench) => {
    const claim = await bench.machine({ notes: "Ada's", cpu: { cores: 1 } });
    const before = await bench.ours(claim);
    const shape = { cpu: { cores: 4 }, memory: { sizeBytes: 768 * mebibyte } };
    await bench.succeed({ kind: "configure", claim, at: await bench.at(claim), shape });
    const after = await bench.ours(claim);
    const expected = {
      ...before.shape,
      cpu: { ...before.shape.cpu, ...shape.cpu },
      memory: { ...before.shape.memory, ...shape.memory },
    };
    assert.deepEqual(after.shape, expected);
    assert.deepEqual(after.mark, before.mark);
    assert.notEqual(after.version, before.version);
  },

  "has nothing to do for a change that was made": async (bench) => {
    const claim = await bench.machine();
    const shape = { cpu: { cores: 3 }, notes: "new" };
    await bench.succeed({ kind: "configure", claim, at: await bench.at(claim), shape });
    const again = await bench.begin({ kind: "configure", claim, at: await bench.at(claim), shape });
    assert.deepEqual(again, { outcome: "done" });
  },

  "grows a disk to a size, once, and never shrinks it": async (bench) => {
    const claim = await bench.machine();
    const grow = async (gibibytes: number) => {
      const at = await bench.at(claim);
      const sizeBytes = gibibytes * gibibyte;
      return await bench.begin({ kind: "grow", claim, at, disk: "root", sizeBytes });
    };
    const grown = await grow(5);
    if (grown.outcome === "task") await bench.end(grown.task);
    assert.equal((await bench.ours(claim)).disks[0]?.sizeBytes, 5 * gibibyte);
    assert.deepEqual(await grow(5), { outcome: "done" });
    const shrunk = await grow(1);
    assert(shrunk.outcome === "refused" && shrunk.failure.category === "ReplacementRequired");
  },

  "gives a new disk a place by its name, which it keeps": async (bench) => {
    const claim = await bench.machine();
    const before = await bench.at(claim);
    const disks = [{ name: "more" }];
    await bench.succeed({ kind: "stamp", claim, at: before, disks, networks: [] });
    const at = await bench.at(claim);
    await bench.succeed({ kind: "addDisk", claim, at, disk: bench.blank("more", 1) });
    const names = (await bench.ours(claim)).disks.map(({ name }) => name);
    assert.deepEqual(new Set(names), new Set(["more", "root"]));
  },

  "switches on and off, and twice is the same as once": async (bench) => {
    const claim = await bench.machine();
    for (const kind of ["powerOn", "powerOn"] as const) {
      await bench.succeed({ kind, claim, at: await bench.at(claim) });
      assert.equal((await bench.ours(claim)).power, "Running");
    }
    for (const mode of ["Forced", "Forced"] as const) {
      await bench.succeed({ kind: "powerOff", claim, at: await bench.at(claim), mode });
      assert.equal((await bench.ours(claim)).power, "Stopped");
    }
  },

  "destroys a machine with its disks, and proves it": async (bench) => {
    const { behind } = bench.stage;
    const other = await bench.machine();
    const claim = await bench.machine();
    const { volumes } = await bench.ours(claim);
    const ids = volumes.map(({ id }) => id);
    await bench.succeed({ kind: "destroy", claim, at: await bench.at(claim), volumes: ids });
    assert.deepEqual(await bench.observe(claim), { at: "absent" });
    assert.deepEqual(behind.machines(), [other.externalId]);
    assert.equal(behind.volumes().length, 1);
    const left = await bench.stage.settle(bench.driver.leftovers(claim));
    assert.deepEqual(left, { ok: true, value: [] });
  },

  "lets a machine go, which stays as it is": async (bench) => {
    const claim = await bench.machine({ notes: "Ada's" });
    await bench.succeed({ kind: "release", claim, at: await bench.at(claim) });
    const seen = await bench.observe(claim);
    assert(seen.at === "foreign" && seen.reason === "Released");
    assert.equal(seen.machine?.shape.notes, "Ada's");
    assert.equal(seen.machine?.disks.length, 1);
  },

  "shows everything at one glance": async (bench) => {
    const claim = await bench.machine();
    const answer = await bench.stage.settle(bench.driver.inventory());
    assert(answer.ok && answer.value.isComplete);
    const { machines, nodes, storages } = answer.value;
    assert.deepEqual(
      machines.map(({ externalId, kind }) => [externalId, kind]),
      [[claim.externalId, "Machine"]],
    );
    assert(nodes.some(({ name, health }) => name === bench.stage.node && health === "Healthy"));
    assert(storages.some(({ name, isUsable }) => name === bench.stage.storage && isUsable));
  },

  "brings in an image that has the sum it should have, and removes only such a one": async (
    bench,
  ) => {
    const { node, discStorage: storage } = bench.stage;
    const content = new TextEncoder().encode("a disc".repeat(100));
    const digest = createHash("sha256").update(content).digest("hex");
    const fileName = `berth-sha256-${digest}.iso`;
    const image = { use: "Disc", node, storage, fileName, checksum: `sha256:${digest}` } as const;
    const isThere = async (): Promise<boolean> => {
      const discs = await bench.stage.settle(bench.driver.discs({ node, storage }));
      assert(discs.ok);
      return discs.value.some((disc) => {
        return disc.fileName === fileName && disc.sizeBytes === content.length;
      });
    };
    const put = (bytes: Uint8Array): Operation => {
      return { kind: "putImage", ...image, sizeBytes: bytes.length, chunks: chunksOf(bytes) };
    };
    const begun = await bench.begin(put(content.toReversed()));
    const end = begun.outcome === "task" ? (await bench.end(begun.task)).state : begun.outcome;
    assert(end === "failed" || end === "refused", end);
    assert.equal(await isThere(), false);
    for (const _ of [1, 2]) await bench.succeed(put(content));
    assert.equal(await isThere(), true);
    const file = { storage: image.storage, name: fileName, content: "ISO" } as const;
    const fileClaim = { externalId: "file", target: "File", state: "Bound", file } as const;
    const removal = { kind: "removeImage", ...image, fileClaim } as const;
    const unproven = { ...removal, fileClaim: { ...fileClaim, state: "Reserved" } } as const;
    assert.equal((await bench.begin(unproven)).outcome, "refused");
    for (const _ of [1, 2]) await bench.succeed(removal);
    assert.equal(await isThere(), false);
  },

  "names everything that is wrong with a machine before it makes anything": async (bench) => {
    const { node, behind } = bench.stage;
    const claim = await bench.claim();
    const volume = behind.leaveVolume(claim.externalId);
    const preflight = await bench.stage.settle(
      bench.driver.preflight({
        claim,
        node,
        shape: { networks: [{ name: "lan", network: "nowhere" }] },
        disks: [
          { ...bench.blank("root"), storage: "nowhere" },
          bench.blank("data", 1024 * 1024),
          { ...bench.blank("copy"), fill: { from: "machine", externalId: "999999" } },
        ],
      }),
    );
    const categories = preflight.findings.map(({ category }) => category).toSorted();
    assert.deepEqual(categories, [
      "ConfigurationError",
      "ConfigurationError",
      "ImageNotFound",
      "OrphanedVolumes",
      "QuotaExceeded",
    ]);
    assert(preflight.otherVolumes.includes(volume));
    assert.deepEqual(behind.machines(), []);
  },

  "finds nothing wrong with what can be made": async (bench) => {
    const claim = await bench.claim();
    const shape = { networks: [{ name: "lan", network: bench.stage.network }] };
    const disks = [bench.blank("root")];
    const draft = { claim, node: bench.stage.node, shape, disks };
    const preflight = await bench.stage.settle(bench.driver.preflight(draft));
    assert.deepEqual(preflight.findings, []);
  },
};

async function* chunksOf(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes.slice(0, 100);
  yield bytes.slice(100);
}
