import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ClaimedMachine, Operation } from "../../../hypervisor/index.ts";
import { Bench } from "../../../hypervisor/testing/stage.ts";
import { releases, type Release } from "../../../sim/index.ts";
import type { PveRequest } from "../wire/wire.ts";
import { simulatedStage } from "../testing/simulated-stage.ts";

/** Each a moment in which the worker may die. */
const momentsMs = Array.from({ length: 20 }, (_, index) => index * 25);

type Making = Extract<Operation, { kind: "addDisk" | "clone" | "configure" | "suspend" }>;
type Prepare = (bench: Bench, made: ClaimedMachine) => Promise<Making>;

/** Where the volumes are made: ZFS logs nothing, files are named before they are written. */
const kinds = ["ZFS", "files"] as const;

/** A VM whose disks are on one kind of storage. */
async function machineOn(
  release: Release,
  kind: (typeof kinds)[number],
): Promise<{
  readonly bench: Bench;
  readonly made: ClaimedMachine;
}> {
  const bench = new Bench(simulatedStage(release));
  const made = await bench.machine();
  if (kind === "files") {
    const storage = bench.stage.otherStorage;
    const at = await bench.at(made);
    await bench.succeed({ kind: "moveDisk", claim: made, at, disk: "root", storage });
  }
  return { bench, made: await bench.bound(made) };
}

/** What is known of the volumes that a task left, over all moments in which it may die. */
async function proofsOf(
  release: Release,
  kind: (typeof kinds)[number],
  prepare: Prepare,
): Promise<Set<string>> {
  const proofs = new Set<string>();
  for (const diesAfterMs of momentsMs) {
    const { bench, made } = await machineOn(release, kind);
    const operation = await prepare(bench, made);
    const claim = await bench.allocating(operation);
    assert(claim.allocation !== undefined, "it is not in the Claim before the task begins");
    const begun = await bench.begin({ ...operation, claim });
    assert(begun.outcome === "task", JSON.stringify(begun));
    await bench.stage.pass(diesAfterMs);
    bench.stage.behind.kill(begun.task);
    await bench.end(begun.task);
    // A program that makes a volume ends what it began, also without its worker.
    await bench.stage.pass(5_000);
    const left = await bench.stage.settle(bench.driver.leftovers(claim));
    assert(left.ok, JSON.stringify(left));
    for (const { proof, volume } of left.value) {
      assert.notEqual(proof, "Unattributed", `${volume} after ${diesAfterMs} ms`);
      proofs.add(proof);
    }
  }
  return proofs;
}

const prepared: Readonly<Record<string, Prepare>> = {
  "cloning a template": async (bench, made) => {
    const source = made.externalId;
    bench.stage.behind.makeTemplate(source);
    const { node } = bench.stage;
    return { kind: "clone", claim: await bench.claim("copy"), node, source, mode: "Linked" };
  },
  "cloning a VM": async (bench, made) => {
    const { node } = bench.stage;
    const claim = await bench.claim("copy");
    return { kind: "clone", claim, node, source: made.externalId, mode: "Full" };
  },
  suspending: async (bench, claim) => {
    await bench.succeed({ kind: "powerOn", claim, at: await bench.at(claim) });
    return { kind: "suspend", claim, at: await bench.at(claim) };
  },
  "adding the volumes of UEFI and a TPM": async (bench, claim) => {
    const shape = { firmware: { type: "UEFI", tpm: "V2.0" } } as const;
    return { kind: "configure", claim, at: await bench.at(claim), shape };
  },
};

for (const release of releases) {
  describe(`volumes of work that is cut short on Proxmox VE ${release}`, () => {
    for (const kind of kinds) {
      for (const [what, prepare] of Object.entries(prepared)) {
        it(`${what}, on ${kind}: what is left is ours, at every moment`, async () => {
          const proofs = await proofsOf(release, kind, prepare);
          const expected = kind === "ZFS" ? "Probable" : "TaskLogged";
          assert(proofs.has(expected), [...proofs].join());
          if (kind === "files") assert(!proofs.has("Probable"), [...proofs].join());
        });
      }
    }

    for (const kind of kinds) {
      const storageOf = ({ stage }: Bench): string => {
        return kind === "ZFS" ? stage.storage : stage.otherStorage;
      };

      it(`adding a blank disk, on ${kind}: it is proven by its name, at every moment`, async () => {
        const proofs = await proofsOf(release, kind, async (bench, claim) => {
          const disk = { ...bench.blank("data", 1), storage: storageOf(bench) };
          return { kind: "addDisk", claim, at: await bench.at(claim), disk };
        });
        assert.deepEqual([...proofs], ["Named"]);
      });

      it(`adding a blank disk, on ${kind}: the config has the Claim's name for it`, async () => {
        const requests: PveRequest[] = [];
        const bench = new Bench(simulatedStage(release, (request) => void requests.push(request)));
        const made = await bench.bound(await bench.machine());
        const disk = { ...bench.blank("data", 1), storage: storageOf(bench) };
        const operation = { kind: "addDisk", claim: made, at: await bench.at(made), disk } as const;
        const claim = await bench.allocating(operation);
        const volume = claim.allocation?.volume ?? "";
        assert.match(volume, /[:/]vm-\d+-berth-0{10}a1(\.raw)?$/);
        await bench.succeed({ ...operation, claim });
        const { disks } = await bench.ours(claim);
        const found = disks.find(({ name }) => name === "data");
        assert.deepEqual([found?.volume, found?.sizeBytes], [volume, disk.sizeBytes]);
        const writes = requests.filter(({ method }) => method === "POST").slice(-2);
        const paths = writes.map(({ path }) => path.replace(/^.*\//, ""));
        assert.deepEqual(paths, ["content", "config"]);
        const left = await bench.stage.settle(bench.driver.leftovers(claim));
        assert.deepEqual(left, { ok: true, value: [] });
      });
    }

    it("adding a blank disk: one whose name is not open in the Claim is not attached", async () => {
      const bench = new Bench(simulatedStage(release));
      const made = await bench.bound(await bench.machine());
      const disk = bench.blank("data", 1);
      const operation = { kind: "addDisk", claim: made, at: await bench.at(made), disk } as const;
      const { allocation } = await bench.allocating(operation);
      assert(allocation !== undefined);
      const settled = { ...allocation, settledAt: allocation.since };
      await bench.succeed({ ...operation, claim: { ...made, allocation: settled } });
      const { disks } = await bench.ours(made);
      const found = disks.find(({ name }) => name === "data");
      assert.match(found?.volume ?? "", /-disk-\d+$/);
    });
  });
}
