import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations, virtualMachineKind } from "../api/index.ts";
import type { WrittenVirtualMachineSpec } from "../api/index.ts";
import { leaveVolume } from "./orphan/testing.ts";
import { ready, volumes } from "./testing/keeping.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, listClaims, until } from "./testing/world.ts";

const web = { namespace: "default", name: "web" };
// On a storage that others share nothing but the Claim proves that a volume is ours.
const backing = "shared:192.0.2.2:/export/shared";
const root = { name: "root", size: "3Gi", storage: "shared" };
const data = { name: "data", size: "2Gi", storage: "shared" };

/** A VM on pve1, and its id. */
async function standing(stage: SimulatedWorld, disks = [root, data]): Promise<string> {
  const spec: Partial<WrittenVirtualMachineSpec> = {
    source: { blank: {} },
    networks: [],
    powerState: "Stopped",
    placement: { node: "pve1" },
  };
  await createVm(stage.world.client, "web", { ...spec, disks });
  return ready(stage);
}

function nameOf(id: string, number: number): string {
  return `${id}/vm-${id}-disk-${number}.raw`;
}

/** The volume that a VM has in a slot, without its storage. */
function volumeAt({ proxmox }: SimulatedWorld, id: string, slot: string): string {
  const text = proxmox.cluster.state.guests[id]?.text ?? "";
  return new RegExp(`^${slot}: [^:]+:([^,\n]+)`, "m").exec(text)?.[1] ?? "";
}

/** Somebody gives a volume of a VM another name, in its configuration too. Returns the old one. */
function rename(
  stage: SimulatedWorld,
  id: string,
  { slot, to }: { slot: string; to: string },
): string {
  const { proxmox } = stage;
  const from = volumeAt(stage, id, slot);
  const volume = proxmox.cluster.state.volumes[backing]?.find(({ name }) => name === from);
  assert.ok(volume, from);
  volume.name = to;
  const text = proxmox.cluster.state.guests[id]?.text ?? "";
  proxmox.writeGuestFile("pve1", Number(id), text.replaceAll(`:${from}`, `:${to}`));
  return from;
}

/** Somebody's own volume, under the id of a VM of ours and a name that is free. */
function leave({ proxmox }: SimulatedWorld, name: string): void {
  leaveVolume(proxmox, name, { backing });
}

async function byHand(
  stage: SimulatedWorld,
  request: Parameters<SimulatedWorld["byHand"]>[0],
): Promise<void> {
  const done = stage.byHand(request);
  await until(stage.world, () => false, 60_000);
  await done;
}

/** Berth looks at the VM again, and has nothing to do. */
async function lookAgain({ world }: SimulatedWorld): Promise<void> {
  const at = String(world.clock.nowMs());
  const merge = { metadata: { annotations: { [annotations.reconcileAt]: at } } };
  await world.client.of(virtualMachineKind).patch(web, { merge });
  await until(world, () => false, 60_000);
  const vm = await getVm(world.client, "web");
  assert.ok(isReady(vm), JSON.stringify(vm?.status));
}

/** The volumes that the VM's Claim calls its own, as "disk volume". */
async function claimed({ world }: SimulatedWorld): Promise<string[]> {
  const claims = await listClaims(world.client);
  const mine = claims.find(({ spec: { state } }) => state === "Bound");
  return (mine?.spec.volumes ?? []).map(({ id, disk }) => `${disk} ${id}`).toSorted();
}

async function edit({ world }: SimulatedWorld, disks: readonly object[]): Promise<void> {
  await world.client.of(virtualMachineKind).patch(web, { merge: { spec: { disks } } });
  const isDone = await until(world, async () => {
    const vm = await getVm(world.client, "web");
    return isReady(vm) && vm?.status?.appliedGeneration === vm?.metadata.generation;
  });
  assert.ok(isDone, JSON.stringify((await getVm(world.client, "web"))?.status));
}

async function remove({ world }: SimulatedWorld): Promise<void> {
  await world.client.of(virtualMachineKind).delete(web);
  const isGone = await until(world, async () => (await getVm(world.client, "web")) === undefined);
  assert.ok(isGone, JSON.stringify((await getVm(world.client, "web"))?.status));
}

describe("the name that a volume of a VM had", () => {
  it("proves nothing once the volume was renamed by hand", async () => {
    const stage = await openProxmox();
    stage.world.start();
    const id = await standing(stage);
    const names = ["scsi0", "scsi1"].map((slot, number) => {
      return rename(stage, id, { slot, to: nameOf(id, 7 + number) });
    });
    await lookAgain(stage);
    for (const name of names) leave(stage, name);
    await remove(stage);
    const left = volumes(stage);
    assert.deepEqual(left.filter((name) => names.includes(name)).toSorted(), names.toSorted());
    assert.equal(left.length, 4, "the renamed ones are kept in a disk-holder VM");
  });

  it("proves nothing once Berth itself has moved the disk to another storage", async () => {
    const stage = await openProxmox();
    stage.world.start();
    const id = await standing(stage);
    const name = volumeAt(stage, id, "scsi1");
    await edit(stage, [root, { ...data, storage: "local-zfs" }]);
    leave(stage, name);
    await remove(stage);
    assert.deepEqual(volumes(stage), [name], "a stranger's volume stays");
  });

  it("proves nothing once somebody has removed the disk, which was detached", async () => {
    const stage = await openProxmox();
    stage.world.start();
    const id = await standing(stage);
    const [kept, name] = ["scsi0", "scsi1"].map((slot) => volumeAt(stage, id, slot));
    await edit(stage, [root]);
    const path = `/nodes/pve1/qemu/${id}/config`;
    await byHand(stage, { method: "PUT", path, params: { delete: "unused0" } });
    assert.deepEqual(volumes(stage), [kept]);
    await lookAgain(stage);
    leave(stage, name ?? "");
    await remove(stage);
    assert.deepEqual(volumes(stage), [name], "a stranger's volume stays");
  });

  it("is not what is destroyed where the entry of the disk says Absent", async () => {
    const stage = await openProxmox();
    stage.world.start();
    const id = await standing(stage);
    const kept = volumeAt(stage, id, "scsi0");
    const name = rename(stage, id, { slot: "scsi1", to: nameOf(id, 8) });
    await lookAgain(stage);
    leave(stage, name);
    const disks = [root, { ...data, state: "Absent" }];
    const { client } = stage.world;
    await client.of(virtualMachineKind).patch(web, { merge: { spec: { disks } } });
    await until(stage.world, () => false, 60_000);
    const left = volumes(stage).toSorted();
    assert.deepEqual(left, [kept, name, nameOf(id, 8)].toSorted(), "neither of them went");
  });

  it("is forgotten before the next disk is made, which gets that name", async () => {
    const named: string[] = [];
    const stage: SimulatedWorld = await openProxmox("8.4", {
      between: async (request, send) => {
        if (request.params?.["scsi1"] !== undefined) named.push(...(await claimed(stage)));
        return send(request);
      },
    });
    // So the server chooses the names, and gives a free one again.
    const shared = stage.proxmox.cluster.state.storages.find(({ storage }) => storage === "shared");
    assert.ok(shared);
    shared.preallocation = "full";
    stage.world.start();
    const id = await standing(stage, [root]);
    rename(stage, id, { slot: "scsi0", to: nameOf(id, 7) });
    await edit(stage, [root, data]);
    assert.deepEqual(named, [`root shared:${nameOf(id, 7)}`]);
    const names = [`data shared:${nameOf(id, 0)}`, `root shared:${nameOf(id, 7)}`];
    assert.deepEqual(await claimed(stage), names);
  });

  it("stays ours while its storage cannot be read, which holds nothing else up", async () => {
    const stage = await openProxmox();
    const { proxmox, world } = stage;
    const first = world.start();
    const local = { ...root, storage: "local-zfs" };
    const id = await standing(stage, [local, data]);
    await first.stop();
    const params = { disk: "scsi1", storage: "local-zfs", delete: "1" };
    await byHand(stage, { method: "POST", path: `/nodes/pve1/qemu/${id}/move_disk`, params });
    proxmox.faults.offline.add(backing);
    const disks = [local, { ...data, storage: "local-zfs" }];
    await world.client.of(virtualMachineKind).patch(web, { merge: { spec: { disks } } });
    world.start();
    assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
    assert.equal((await claimed(stage)).length, 2, "nobody can tell yet whose the new one is");
    proxmox.faults.offline.clear();
    await lookAgain(stage);
    const [at0, at1] = ["scsi0", "scsi1"].map((slot) => volumeAt(stage, id, slot));
    assert.deepEqual(await claimed(stage), [`data local-zfs:${at1}`, `root local-zfs:${at0}`]);
  });
});

describe("a disk that somebody moved to another slot and renamed", () => {
  it("is told as missing, and recognised once it is in its slot again", async () => {
    const stage = await openProxmox();
    const { proxmox, world } = stage;
    world.start();
    const id = await standing(stage, [root]);
    const replug = (from: string, to: string): void => {
      const text = proxmox.cluster.state.guests[id]?.text ?? "";
      proxmox.writeGuestFile("pve1", Number(id), text.replace(`\n${from}:`, `\n${to}:`));
    };
    const failure = async (): Promise<string> => {
      await world.client.of(virtualMachineKind).patch(web, {
        merge: {
          metadata: { annotations: { [annotations.reconcileAt]: `${world.clock.nowMs()}` } },
        },
      });
      await until(world, () => false, 60_000);
      const { category, message } = (await getVm(world.client, "web"))?.status?.failure ?? {};
      return `${category}: ${message}`;
    };
    replug("scsi0", "scsi8");
    assert.match(await failure(), /^IdentityConflict: .* as scsi8; its place is scsi0/);
    rename(stage, id, { slot: "scsi8", to: nameOf(id, 7) });
    const said = await failure();
    assert.match(said, /^Missing: The disk root .* scsi0 is empty/);
    assert.ok(said.includes(`scsi8 (shared:${nameOf(id, 7)}, 3Gi)`), said);
    replug("scsi8", "scsi0");
    await lookAgain(stage);
    assert.deepEqual(await claimed(stage), [`root shared:${nameOf(id, 7)}`]);
  });
});
