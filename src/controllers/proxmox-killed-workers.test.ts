import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations, virtualMachineKind } from "../api/index.ts";
import type { WrittenVirtualMachineSpec } from "../api/index.ts";
import { releases, type Release } from "../sim/index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, listClaims, until } from "./testing/world.ts";

const hourMs = 60 * 60_000;
const gib = 1024 ** 3;
const kills = 2;

/** A storage of each kind that tells its volumes in another way. */
const storages = {
  "local-zfs": { backing: "pve1:rpool/data", fileOf: (_id: string, name: string) => name },
  local: {
    backing: "pve1:/var/lib/vz",
    fileOf: (id: string, name: string) => `${id}/${name}.raw`,
  },
} as const;

type StorageName = keyof typeof storages;

interface Killing {
  readonly what: string;
  /** How the VM is declared whose workers are killed. */
  readonly declare: (stage: SimulatedWorld, storage: StorageName) => Promise<Declared>;
  /** Work has a name such as "qmconfig:101", or that of its request. */
  readonly work: RegExp;
  /** The step at whose beginning it is killed. */
  readonly at: RegExp;
  /** Whether what it leaves is proven on every storage; else only where the log names it. */
  readonly isProven?: true;
}

type Declared = Partial<WrittenVirtualMachineSpec>;

const killings: readonly Killing[] = [
  {
    what: "a server that makes a blank disk",
    declare: (_stage, storage) => Promise.resolve(blank(storage)),
    work: /^POST .*\/content$/,
    at: /^(?:qemu-img create|create device)$/,
    isProven: true,
  },
  {
    what: "a server that has made a blank disk",
    declare: (_stage, storage) => Promise.resolve(blank(storage)),
    work: /^POST .*\/content$/,
    at: /^allocated$/,
    isProven: true,
  },
  {
    what: "a worker that attaches a blank disk",
    declare: (_stage, storage) => Promise.resolve(blank(storage)),
    work: /^qmconfig:/,
    at: /./,
    isProven: true,
  },
  {
    what: "a worker that copies a VM",
    declare: async (stage, storage) => {
      await makeReady(stage, "base", { ...blank(storage), powerState: "Stopped" });
      return { ...blank(storage), source: { clone: { vmRef: { name: "base" } } } };
    },
    work: /^qmconfig:/,
    at: /^copy begins$/,
  },
  {
    what: "a worker that makes a linked clone",
    declare: async (stage, storage) => {
      const stopped = { ...blank(storage), powerState: "Stopped" } as const;
      const externalId = await makeReady(stage, "base", stopped);
      const path = `/nodes/pve1/qemu/${externalId}/template`;
      await finished(stage, stage.byHand({ method: "POST", path }));
      await until(stage.world, () => false, 10_000);
      return { ...blank(storage), source: { clone: { externalId, mode: "Linked" } } };
    },
    work: /^qmclone:/,
    at: /^(?:link clone|cloned scsi0 of)/,
  },
];

function blank(storage: StorageName): Declared {
  return {
    source: { blank: {} },
    disks: [{ name: "root", size: "5Gi", storage }],
    placement: { node: "pve1" },
  };
}

async function finished(stage: SimulatedWorld, work: Promise<void>): Promise<void> {
  const state = { isDone: false };
  void work.then(() => (state.isDone = true));
  assert.ok(await until(stage.world, () => state.isDone));
}

async function makeReady(stage: SimulatedWorld, name: string, spec: Declared): Promise<string> {
  const { client } = stage.world;
  await createVm(client, name, spec);
  const isThere = await until(stage.world, async () => isReady(await getVm(client, name)), hourMs);
  const vm = await getVm(client, name);
  assert.ok(isThere, JSON.stringify(vm?.status));
  return vm?.status?.externalId ?? "";
}

interface Scene {
  readonly stage: SimulatedWorld;
  /** The volumes that a person made under the ids whose workers were killed. */
  readonly byHand: Set<string>;
  readonly killed: { times: number };
}

/**
 * Kills the workers of a VM. Just before each dies, a person makes two volumes under the same id:
 * one with a name that the hypervisor might choose, one that looks as if Berth had chosen it.
 */
async function scene(
  release: Release,
  storage: StorageName,
  { declare, work, at }: Killing,
): Promise<Scene> {
  const stage = await openProxmox(release);
  const byHand = new Set<string>();
  const killed = { times: 0 };
  stage.world.start();
  const spec = await declare(stage, storage);
  const ids = new Set(Object.keys(stage.proxmox.cluster.state.guests));
  stage.proxmox.faults.onStep({
    verdict: { kind: "kill" },
    times: kills,
    matches: ({ name }, step) => {
      if (!work.test(name) || !at.test(step.name)) return false;
      killed.times++;
      for (const id of Object.keys(stage.proxmox.cluster.state.guests)) {
        if (ids.has(id)) continue;
        for (const label of ["disk-7", "berth-0123456789ab"]) {
          byHand.add(allocateByHand(stage, storage, { id, label }));
        }
      }
      return true;
    },
  });
  await makeReady(stage, "web", spec);
  return { stage, byHand, killed };
}

function allocateByHand(
  { proxmox }: SimulatedWorld,
  storage: StorageName,
  { id, label }: { readonly id: string; readonly label: string },
): string {
  const { backing, fileOf } = storages[storage];
  const name = fileOf(id, `vm-${id}-${label}`);
  const { state, clock } = proxmox.cluster;
  const rows = state.volumes[backing] ?? [];
  state.volumes[backing] = rows;
  const size = { sizeBytes: 7 * gib, usedBytes: 7 * gib, createdMs: clock.nowMs() };
  const row = { name, content: "images", format: "raw", vmid: Number(id), ...size } as const;
  if (!rows.some((one) => one.name === name)) rows.push(row);
  return name;
}

/** Volumes that no VM uses and that no person made. */
function leftBy({ stage, byHand }: Scene): string[] {
  const { volumes, guests } = stage.proxmox.cluster.state;
  const texts = Object.values(guests).map(({ text }) => text);
  return Object.values(volumes)
    .flat()
    .filter(({ vmid, name }) => vmid !== undefined && !byHand.has(name))
    .map(({ name }) => name)
    .filter((name) => !texts.some((text) => text.includes(name)));
}

async function probableOf({ stage }: Scene): Promise<string[]> {
  const claims = await listClaims(stage.world.client);
  const known = claims.flatMap(({ spec }) => spec.probableVolumes ?? []);
  // A linked clone on ZFS has the name of its base before its own.
  return known.map(({ id }) => id.replace(/^[^:]+:(?:base-[^/]+\/)?/, ""));
}

async function deleteVm({ world }: SimulatedWorld, name: string): Promise<void> {
  await world.client.of(virtualMachineKind).delete({ namespace: "default", name });
  const isGone = async (): Promise<boolean> => (await getVm(world.client, name)) === undefined;
  assert.ok(await until(world, isGone, hourMs), JSON.stringify(await getVm(world.client, name)));
}

for (const release of releases) {
  for (const storage of ["local-zfs", "local"] as const) {
    for (const killing of killings) {
      describe(`${killing.what} on Proxmox VE ${release}, ${storage}, is killed`, () => {
        it("and the VM is made all the same, and what is left is known; others' volumes stay", async () => {
          const found = await scene(release, storage, killing);
          const { stage, byHand, killed } = found;
          assert.equal(killed.times, kills);
          const left = leftBy(found);
          const probable = await probableOf(found);
          assert.deepEqual(left.toSorted(), probable.toSorted(), "what is left is in a Claim");
          if (killing.isProven === true || storage === "local") assert.deepEqual(left, []);
          await deleteVm(stage, "web");
          assert.deepEqual(leftBy(found).toSorted(), left.toSorted(), "after it was deleted");
          const names = new Set(
            Object.values(stage.proxmox.cluster.state.volumes)
              .flat()
              .map(({ name }) => name),
          );
          assert.ok(byHand.size >= 2);
          assert.deepEqual(
            [...byHand].filter((name) => !names.has(name)),
            [],
            "others' volumes",
          );
        });
      });
    }
  }
}

/** A person makes a file on pve1 under the id of the VM. */
async function makeFile(stage: SimulatedWorld, size: string): Promise<{ isThere(): boolean }> {
  const id = (await getVm(stage.world.client, "web"))?.status?.externalId ?? "";
  const filename = `vm-${id}-disk-0.qcow2`;
  const params = { filename, size, vmid: id, format: "qcow2" };
  const path = "/nodes/pve1/storage/local/content";
  await finished(stage, stage.asRoot({ method: "POST", path, params }));
  const rows = stage.proxmox.cluster.state.volumes["pve1:/var/lib/vz"] ?? [];
  const made = rows.find(({ name }) => name.endsWith(`/${filename}`));
  assert.ok(made);
  return { isThere: () => rows.includes(made) };
}

/** The import of a VM's disk fails once, and the hypervisor frees the file that it had made. */
async function failedImport(stage: SimulatedWorld): Promise<void> {
  const { world, proxmox } = stage;
  proxmox.faults.onStep({
    verdict: { kind: "fail", error: new Error("qemu-img: error while writing") },
    times: 1,
    matches: ({ name }, step) => name.startsWith("qmconfig") && step.name === "copy begins",
  });
  world.start();
  await createVm(world.client, "web", {
    source: { image: { name: "debian" } },
    disks: [{ name: "root", size: "60Gi", storage: "local" }],
    placement: { node: "pve1" },
    powerState: "Stopped",
  });
  const hasFailed = async (): Promise<boolean> => {
    return (await getVm(world.client, "web"))?.status?.failure !== undefined;
  };
  assert.ok(await until(world, hasFailed));
}

async function setPaused({ world }: SimulatedWorld, value: string | null): Promise<void> {
  const merge = { metadata: { annotations: { [annotations.paused]: value } } };
  await world.client.of(virtualMachineKind).patch({ namespace: "default", name: "web" }, { merge });
}

async function isMade(stage: SimulatedWorld): Promise<void> {
  const { world } = stage;
  const isThere = await until(world, async () => isReady(await getVm(world.client, "web")), hourMs);
  assert.ok(isThere, JSON.stringify((await getVm(world.client, "web"))?.status));
}

describe("a worker that fails and frees its volume", () => {
  // The second has exactly the size of the one that was freed.
  for (const size of ["50G", "3G"]) {
    it(`does not make a person's file of ${size} Berth's, which has the name since`, async () => {
      const stage = await openProxmox();
      await failedImport(stage);
      await until(stage.world, () => false, 5_000);
      const theirs = await makeFile(stage, size);
      await isMade(stage);
      assert.ok(theirs.isThere());
      await deleteVm(stage, "web");
      assert.ok(theirs.isThere());
    });

    it(`does not make a file of ${size} Berth's that a corrected clock dates back`, async () => {
      const aheadMs = 600_000;
      const stage = await openProxmox("8.4", { clockAheadMs: aheadMs });
      const { world, proxmox } = stage;
      await failedImport(stage);
      const failedMs = world.clock.nowMs();
      await setPaused(stage, "true");
      proxmox.cluster.setClocks(0);
      await until(world, () => false, failedMs + aheadMs - world.clock.nowMs());
      const theirs = await makeFile(stage, size);
      await setPaused(stage, null);
      await isMade(stage);
      assert.ok(theirs.isThere());
    });
  }
});
