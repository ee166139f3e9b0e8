import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { orphanKind, virtualMachineKind } from "../api/index.ts";
import type { WrittenVirtualMachineSpec } from "../api/index.ts";
import { limits } from "../kernel/limits.ts";
import { releases, type Release } from "../sim/index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, listClaims, until } from "./testing/world.ts";

const hourMs = 60 * 60_000;
const gib = 1024 ** 3;

/** A storage of each kind that tells its volumes in another way. */
const storages = {
  "local-zfs": { backing: "pve1:rpool/data", fileOf: (_id: string, name: string) => name },
  local: {
    backing: "pve1:/var/lib/vz",
    fileOf: (id: string, name: string) => `${id}/${name}.raw`,
  },
} as const;

type StorageName = keyof typeof storages;

function blank(storage: StorageName): Partial<WrittenVirtualMachineSpec> {
  return {
    source: { blank: {} },
    disks: [{ name: "root", size: "5Gi", storage }],
    placement: { node: "pve1" },
  };
}

/** Somebody makes a volume under an id by hand: no task, no log. Returns its name. */
function allocateByHand(
  { proxmox }: SimulatedWorld,
  storage: StorageName,
  { id, name, sizeBytes = 7 * gib }: { id: string; name: string; sizeBytes?: number },
): string {
  const { backing, fileOf } = storages[storage];
  const file = fileOf(id, name);
  const { state, clock } = proxmox.cluster;
  const rows = state.volumes[backing] ?? [];
  state.volumes[backing] = rows;
  rows.push({
    name: file,
    content: "images",
    format: "raw",
    sizeBytes,
    usedBytes: sizeBytes,
    createdMs: clock.nowMs(),
    vmid: Number(id),
  });
  return file;
}

function names({ proxmox }: SimulatedWorld): string[] {
  const all = Object.values(proxmox.cluster.state.volumes).flat();
  return all.filter(({ vmid }) => vmid !== undefined).map(({ name }) => name);
}

async function makeReady(stage: SimulatedWorld, name: string): Promise<string> {
  const { client } = stage.world;
  const isThere = await until(stage.world, async () => isReady(await getVm(client, name)), hourMs);
  const vm = await getVm(client, name);
  assert.ok(isThere, JSON.stringify(vm?.status));
  return vm?.status?.externalId ?? "";
}

async function deleteVm({ world }: SimulatedWorld, name: string): Promise<void> {
  await world.client.of(virtualMachineKind).delete({ namespace: "default", name });
  const isGone = await until(world, async () => (await getVm(world.client, name)) === undefined);
  assert.ok(isGone, JSON.stringify((await getVm(world.client, name))?.status));
}

const cases = releases.flatMap((release) =>
  (["local-zfs", "local"] as const).map((storage) => ({ release, storage })),
);

for (const { release, storage } of cases) {
  describe(`volumes of others on Proxmox VE ${release}, ${storage}`, () => {
    it("that somebody makes under the id of a VM outlive the VM", async () => {
      const stage = await openProxmox(release);
      const berth = stage.world.start();
      await createVm(stage.world.client, "web", blank(storage));
      const id = await makeReady(stage, "web");
      const rescue = allocateByHand(stage, storage, { id, name: `vm-${id}-rescue` });
      const disk = allocateByHand(stage, storage, { id, name: `vm-${id}-disk-7` });
      await deleteVm(stage, "web");
      assert.deepEqual(names(stage).toSorted(), [rescue, disk].toSorted());
      berth.crash();
    });

    it("that somebody attaches to the VM by hand outlive it on a disk-holder VM", async () => {
      const stage = await openProxmox(release);
      const berth = stage.world.start();
      await createVm(stage.world.client, "web", { ...blank(storage), powerState: "Stopped" });
      const id = await makeReady(stage, "web");
      allocateByHand(stage, storage, { id, name: `vm-${id}-rescue` });
      const { fileOf } = storages[storage];
      const scsi9 = `${storage}:${fileOf(id, `vm-${id}-rescue`)}`;
      const path = `/nodes/pve1/qemu/${id}/config`;
      const state = { isDone: false };
      const attached = stage.byHand({ method: "PUT", path, params: { scsi9 } });
      void attached.then(() => (state.isDone = true));
      assert.ok(await until(stage.world, () => state.isDone));
      await deleteVm(stage, "web");
      const [left, ...more] = Object.values(stage.proxmox.cluster.state.volumes)
        .flat()
        .filter(({ vmid }) => vmid !== undefined);
      assert.deepEqual([left?.sizeBytes, more], [7 * gib, []]);
      assert.notEqual(left?.vmid, Number(id));
      berth.crash();
    });

    it("that appear after the id was listed and before the VM exists outlive it", async () => {
      const made: { stage?: SimulatedWorld; left?: string } = {};
      const stage = await openProxmox(release, {
        between: async (request, send) => {
          const { method, path, params } = request;
          if (method === "POST" && path.endsWith("/qemu") && made.stage !== undefined) {
            const id = String(params?.["vmid"]);
            made.left ??= allocateByHand(made.stage, storage, { id, name: `vm-${id}-disk-4` });
          }
          return await send(request);
        },
      });
      made.stage = stage;
      const berth = stage.world.start();
      await createVm(stage.world.client, "web", blank(storage));
      await makeReady(stage, "web");
      assert.ok(made.left !== undefined);
      await deleteVm(stage, "web");
      assert.deepEqual(names(stage), [made.left]);
      berth.crash();
    });
  });
}

interface Killing {
  readonly vms: number;
  readonly kills: number;
  readonly storage: StorageName;
  /** How many steps each worker gets; absent: it dies in the middle of its copy. */
  readonly steps?: number;
  readonly firmware?: { readonly type: "UEFI" };
  readonly clockAheadMs?: number;
}

/** Kills the workers of so many imports. */
async function withKilledImports(
  release: Release,
  { vms, kills, storage, steps, firmware, clockAheadMs = 0 }: Killing,
): Promise<SimulatedWorld> {
  const stage = await openProxmox(release, { clockAheadMs });
  stage.proxmox.faults.onStep({
    verdict: { kind: "kill" },
    times: kills,
    matches: ({ name, steps: at }, step) => {
      const isNow = steps === undefined ? step.name === "copy begins" : at >= steps;
      return name.startsWith("qmconfig") && isNow;
    },
  });
  stage.world.start();
  const disks = [{ name: "root", size: "3Gi", storage }];
  const more = firmware === undefined ? {} : { firmware };
  for (let index = 0; index < vms; index++) {
    const placement = { node: "pve1" };
    await createVm(stage.world.client, `web-${index}`, { disks, placement, ...more });
  }
  const { client } = stage.world;
  for (let index = 0; index < vms; index++) {
    const name = `web-${index}`;
    await until(stage.world, async () => isReady(await getVm(client, name)), hourMs / 2);
  }
  return stage;
}

/** Volumes that no VM uses, and those that Claims call probably ours, by their names. */
async function leftBy(
  stage: SimulatedWorld,
): Promise<Record<"recorded" | "left", ReadonlySet<string | undefined>>> {
  const claims = await listClaims(stage.world.client);
  const nameOf = ({ id }: { readonly id: string }): string | undefined => id.split(":")[1];
  const used = new Set(claims.flatMap(({ spec }) => (spec.volumes ?? []).map(nameOf)));
  const left = new Set(names(stage).filter((name) => !used.has(name)));
  const known = claims.flatMap(({ spec }) => spec.probableVolumes ?? []);
  return { recorded: new Set(known.map(nameOf)), left };
}

const loggedCases = [
  { release: "8.4", storage: "local" },
  { release: "9.2", storage: "local" },
  { release: "9.2", storage: "local-zfs" },
] as const;

describe("imports whose workers are killed", () => {
  for (const { release, storage } of loggedCases) {
    it(`leave nothing where the log names the volume (${release}, ${storage})`, async () => {
      const stage = await withKilledImports(release, { vms: 3, kills: 4, storage });
      assert.equal(names(stage).length, 3, names(stage).join());
    });
  }

  it("are counted, reported and bounded where nothing is logged (8.4, local-zfs)", async () => {
    const stage = await withKilledImports("8.4", { vms: 3, kills: 4, storage: "local-zfs" });
    const { recorded, left } = await leftBy(stage);
    assert.deepEqual(recorded, left, "every volume that a killed worker left is in a Claim");
    assert.equal(left.size, 4);
  });

  for (const seconds of [-600, -120, -15, 15, 120, 600]) {
    const clockAheadMs = seconds * 1000;
    const killing = { vms: 1, kills: 3, clockAheadMs } as const;
    it(`leave nothing behind by a clock that is ${seconds} s ahead (8.4, local)`, async () => {
      const stage = await withKilledImports("8.4", { ...killing, storage: "local" });
      assert.equal(names(stage).length, 1, names(stage).join());
    });

    it(`are counted by a clock that is ${seconds} s ahead (8.4, local-zfs)`, async () => {
      const stage = await withKilledImports("8.4", { ...killing, storage: "local-zfs" });
      const { recorded, left } = await leftBy(stage);
      assert.deepEqual(recorded, left);
      assert.equal(left.size, 3);
    });
  }

  for (const release of ["8.4", "9.2"] as const) {
    it(`are accounted for at whichever step they die (${release}, local-zfs)`, async () => {
      const sizes: number[] = [];
      for (const steps of [2, 3, 4, 5, 6, 7, 8]) {
        const firmware = { type: "UEFI" } as const;
        const killing = { vms: 1, kills: 2, storage: "local-zfs", steps, firmware } as const;
        const { recorded, left } = await leftBy(await withKilledImports(release, killing));
        assert.deepEqual(recorded, left, `killed at step ${steps}`);
        sizes.push(left.size);
      }
      assert.ok(Math.max(...sizes) > 0, "some of them leave volumes");
    });
  }

  it("stop at the budget of the storage, and are reported until somebody approves", async () => {
    const stage = await openProxmox("8.4");
    stage.proxmox.faults.onStep({
      verdict: { kind: "kill" },
      times: Infinity,
      matches: ({ name }, step) => name.startsWith("qmconfig") && step.name === "copy begins",
    });
    const berth = stage.world.start();
    const { client } = stage.world;
    const vms = Array.from({ length: 8 }, (_, index) => `web-${index}`);
    const disks = [{ name: "root", size: "3Gi", storage: "local-zfs" }];
    for (const name of vms) await createVm(client, name, { disks, placement: { node: "pve1" } });
    await until(stage.world, () => false, 2 * hourMs);
    const left = names(stage);
    const most = limits.probableBytesPerStorage / (3 * gib) + 1;
    assert.ok(left.length >= 20 && left.length <= most, `${left.length} volumes`);
    const failures = await Promise.all(
      vms.map(async (name) => (await getVm(client, name))?.status),
    );
    const stopped = failures.filter((status) => status?.failure?.category === "OrphanedVolumes");
    assert.ok(stopped.length > 0, JSON.stringify(failures.map((status) => status?.failure)));
    const { items } = await client.of(orphanKind).list();
    const told = items.filter(({ status }) => status?.ownership === "Probable");
    assert.equal(told.length, left.length);
    const [first] = told;
    assert.ok(first !== undefined);
    assert.ok(first.status?.evidence?.some((text) => text.includes("exactly the size")));
    const { name = "" } = first.metadata;
    const confirm = first.spec.externalId;
    const merge = { spec: { decision: "Destroy", confirm } };
    await client.of(orphanKind).patch({ name }, { merge });
    const isGone = await until(stage.world, () => names(stage).length === left.length - 1, hourMs);
    assert.ok(isGone, names(stage).join());
    const isForgotten = await until(stage.world, async () => {
      const claims = await listClaims(client);
      return !claims.some(({ spec }) => spec.probableVolumes?.some(({ id }) => id === confirm));
    });
    assert.ok(isForgotten);
    berth.crash();
  });
});
