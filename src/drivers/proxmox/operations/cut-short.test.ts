import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ClaimedMachine, Operation } from "../../../hypervisor/index.ts";
import { Bench } from "../../../hypervisor/testing/stage.ts";
import { type Release, releases } from "../../../sim/index.ts";
import { simulatedStage } from "../testing/simulated-stage.ts";

/** Each a moment in which the worker may die. */
const momentsMs = Array.from({ length: 16 }, (_, index) => index * 75);

/** A machine with a disk, its Claim up to date, and a task on it that dies after a while. */
async function cutShort(
  release: Release,
  diesAfterMs: number,
  operationOf: (bench: Bench, claim: ClaimedMachine) => Promise<Operation>,
): Promise<{ readonly bench: Bench; readonly claim: ClaimedMachine }> {
  const bench = new Bench(simulatedStage(release));
  const made = await bench.machine();
  await bench.succeed({
    kind: "addDisk",
    claim: made,
    at: await bench.at(made),
    disk: bench.blank("data", 1),
  });
  const bound = await bench.bound(made);
  const operation = await operationOf(bench, bound);
  const claim = operation.kind === "moveDisk" ? await bench.allocating(operation) : bound;
  const begun = await bench.begin(operation);
  assert(begun.outcome === "task", JSON.stringify(begun));
  await bench.stage.pass(diesAfterMs);
  bench.stage.behind.kill(begun.task);
  await bench.end(begun.task);
  return { bench, claim };
}

/** Removes all that is provably ours, as a controller would. */
async function sweep(bench: Bench, claim: ClaimedMachine): Promise<void> {
  const left = await bench.stage.settle(bench.driver.leftovers(claim));
  assert(left.ok, JSON.stringify(left));
  for (const { volume, proof, node } of left.value) {
    assert(proof === "Claimed" || proof === "TaskLogged", `${volume}: ${proof}`);
    await bench.succeed({ kind: "removeVolume", claim, node, volume });
  }
}

for (const release of releases) {
  describe(`work that is cut short on Proxmox VE ${release}`, () => {
    it("moving a disk: there is one whole disk at every moment, and nothing more", async () => {
      const storages = new Set<string>();
      for (const diesAfterMs of momentsMs) {
        const { bench, claim } = await cutShort(release, diesAfterMs, async (on, of) => {
          const storage = on.stage.otherStorage;
          return { kind: "moveDisk", claim: of, at: await on.at(of), disk: "root", storage };
        });
        await sweep(bench, claim);
        const { disks } = await bench.ours(claim);
        const root = disks.find(({ name }) => name === "root");
        assert(root !== undefined);
        storages.add(root.storage);
        assert.equal(bench.stage.behind.volumes().length, 2);
        await bench.succeed({ kind: "powerOn", claim, at: await bench.at(claim) });
      }
      assert.equal(storages.size, 2);
    });

    it("importing a disk: what is left is ours, provably or probably, at every moment", async () => {
      // Release 7.4 takes no image files.
      if (release === "7.4") return;
      const proofs = new Set<string>();
      for (let diesAfterMs = 0; diesAfterMs < 400; diesAfterMs += 20) {
        const bench = new Bench(simulatedStage(release));
        const made = await bench.bound(await bench.machine());
        const { volume = "", sizeBytes = 0 } = bench.stage.image ?? {};
        const fill = { from: "volume", volume } as const;
        const disk = { ...bench.blank("data"), sizeBytes, fill };
        const operation = {
          kind: "addDisk",
          claim: made,
          at: await bench.at(made),
          disk,
        } as const;
        const claim = await bench.allocating(operation);
        const begun = await bench.begin(operation);
        assert(begun.outcome === "task", JSON.stringify(begun));
        await bench.stage.pass(diesAfterMs);
        bench.stage.behind.kill(begun.task);
        await bench.end(begun.task);
        // A program that makes a volume ends what it began, also without its worker.
        await bench.stage.pass(5_000);
        const left = await bench.stage.settle(bench.driver.leftovers(claim));
        assert(left.ok, JSON.stringify(left));
        for (const { proof } of left.value) proofs.add(proof);
      }
      assert(!proofs.has("Unattributed"), [...proofs].join());
      assert(proofs.has("Probable"), [...proofs].join());
    });

    it("destroying a disk: the other one stays, and a second attempt ends it", async () => {
      for (const diesAfterMs of momentsMs) {
        const { bench, claim } = await cutShort(release, diesAfterMs, async (on, of) => {
          const part = { of: "disk", name: "data" } as const;
          await on.succeed({ kind: "detach", claim: of, at: await on.at(of), part });
          const volume = of.volumes?.find(({ disk }) => disk === "data")?.id ?? "";
          return { kind: "destroyDisk", claim: of, at: await on.at(of), volume };
        });
        const volume = claim.volumes?.find(({ disk }) => disk === "data")?.id ?? "";
        await bench.succeed({ kind: "destroyDisk", claim, at: await bench.at(claim), volume });
        assert.equal(bench.stage.behind.volumes().length, 1);
        const names = (await bench.ours(claim)).disks.map(({ name }) => name);
        assert.deepEqual(names, ["root"]);
      }
    });

    it("moving a machine: it is on one node, with its disks, or says what holds it", async () => {
      for (const diesAfterMs of momentsMs) {
        const { bench, claim } = await cutShort(release, diesAfterMs, async (on, of) => {
          return { kind: "migrate", claim: of, at: await on.at(of), to: on.stage.otherNode };
        });
        const machine = await bench.ours(claim);
        assert.equal(machine.disks.length, 2);
        if (machine.lock === undefined) continue;
        assert.equal(machine.lock.kind, "Migrate");
        assert.equal(machine.lock.state, "Dead");
        assert.match(machine.lock.remedy ?? "", /qm unlock/);
      }
    });

    it("cloning: nothing, a husk of ours, or a clone that can be stamped", async () => {
      const ends = new Set<string>();
      for (const diesAfterMs of momentsMs) {
        let source = "";
        const target = { claim: undefined as ClaimedMachine | undefined };
        const { bench } = await cutShort(release, diesAfterMs, async (on, of) => {
          source = of.externalId;
          on.stage.behind.makeTemplate(source);
          target.claim = await on.claim();
          const { node } = on.stage;
          return { kind: "clone", claim: target.claim, node, source, mode: "Linked" };
        });
        assert(target.claim !== undefined);
        const seen = await bench.observe(target.claim, { clonedFrom: source });
        ends.add(seen.at === "foreign" ? seen.reason : seen.at);
        if (seen.at === "opaque") assert.equal(seen.lock.state, "Dead");
      }
      for (const end of ends) assert(["absent", "opaque", "Unstamped"].includes(end), end);
      assert(ends.has("opaque") && ends.has("Unstamped"), [...ends].join());
    });
  });
}
