import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations, virtualMachineKind } from "../api/index.ts";
import type { Claim, VirtualMachine, WrittenVirtualMachineSpec } from "../api/index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, listClaims, until } from "./testing/world.ts";

const gib = 1024 ** 3;
const backing = "pve1:rpool/data";
const web = { namespace: "default", name: "web" };
const disks = [
  { name: "root", size: "5Gi", storage: "local-zfs" },
  { name: "data", size: "6Gi", storage: "local-zfs" },
];

/** A paused VM with the disks root and data. */
interface Scene {
  readonly stage: SimulatedWorld;
  readonly id: string;
  /** The volume of the disk data. */
  readonly data: string;
}

async function setUp(spec: Partial<WrittenVirtualMachineSpec> = {}): Promise<Scene> {
  const stage = await openProxmox("8.4");
  const { world } = stage;
  world.start();
  const place = { powerState: "Stopped", placement: { node: "pve1" } } as const;
  await createVm(world.client, "web", { source: { blank: {} }, ...place, disks, ...spec });
  const isThere = await until(world, async () => isReady(await getVm(world.client, "web")));
  const vm = await getVm(world.client, "web");
  assert.ok(isThere, JSON.stringify(vm?.status));
  const id = vm?.status?.externalId ?? "";
  // A guest that has come up lets a disk go.
  await until(world, () => false, 5 * 60_000);
  await pause(stage, "true");
  return { stage, id, data: volumeAt(stage, id, "scsi1") ?? "" };
}

async function pause({ world }: SimulatedWorld, paused: "true" | null): Promise<void> {
  const merge = { metadata: { annotations: { [annotations.paused]: paused } } };
  await world.client.of(virtualMachineKind).patch(web, { merge });
  await until(world, () => false, 10_000);
}

/** Berth goes on, and looks at the VM for a quarter of an hour. */
async function resume(stage: SimulatedWorld): Promise<VirtualMachine> {
  await pause(stage, null);
  await until(stage.world, () => false, 15 * 60_000);
  const vm = await getVm(stage.world.client, "web");
  assert.ok(vm);
  return vm;
}

async function remove({ world }: SimulatedWorld): Promise<void> {
  await world.client.of(virtualMachineKind).delete(web);
  const isGone = await until(world, async () => (await getVm(world.client, "web")) === undefined);
  assert.ok(isGone, JSON.stringify((await getVm(world.client, "web"))?.status));
}

/** A person sends a request, and its work goes on. */
async function ask(
  stage: SimulatedWorld,
  [method, path]: readonly ["PUT" | "POST", string],
  params: Record<string, string>,
): Promise<void> {
  const { world } = stage;
  let isDone = false;
  void stage
    .byHand({ method, path: `/nodes/pve1/qemu${path}`, params })
    .then(() => (isDone = true));
  assert.ok(await until(world, () => isDone, 60_000));
  await until(world, () => false, 5_000);
}

function edit({ stage, id }: Scene, params: Record<string, string>): Promise<void> {
  return ask(stage, ["PUT", `/${id}/config`], params);
}

/** The volume in a slot of a VM, with its storage. */
function volumeAt({ proxmox }: SimulatedWorld, id: string, slot: string): string | undefined {
  const text = proxmox.cluster.state.guests[id]?.text ?? "";
  return new RegExp(`^${slot}: ([^,\n]+)`, "m").exec(text)?.[1];
}

function rowsOf({
  stage,
}: Scene): SimulatedWorld["proxmox"]["cluster"]["state"]["volumes"][string] {
  const rows = stage.proxmox.cluster.state.volumes[backing];
  assert.ok(rows);
  return rows;
}

type Row = ReturnType<typeof rowsOf>[number];

/** The row of a volume: the same object whatever name and owner it gets. */
function rowOf(scene: Scene, volume = ""): Row {
  const row = rowsOf(scene).find(({ name }) => volume === `local-zfs:${name}`);
  assert.ok(row, volume);
  return row;
}

/** Somebody makes a volume under the id of the VM, without any task. */
function makeVolume(scene: Scene, name: string, sizeBytes = 6 * gib): Row {
  const { clock } = scene.stage.proxmox.cluster;
  const size = { sizeBytes, usedBytes: sizeBytes, createdMs: clock.nowMs() };
  rowsOf(scene).push({ name, content: "images", format: "raw", ...size, vmid: Number(scene.id) });
  return rowOf(scene, `local-zfs:${name}`);
}

async function claimOf({ world }: SimulatedWorld): Promise<Claim> {
  const claim = (await listClaims(world.client)).find(({ spec }) => spec.state === "Bound");
  assert.ok(claim);
  return claim;
}

/** The id of the volume that the Claim has as the disk data, and what proves it. */
async function recorded(stage: SimulatedWorld): Promise<unknown[]> {
  const { spec } = await claimOf(stage);
  return (spec.volumes ?? []).filter(({ disk }) => disk === "data").map(({ id }) => id);
}

function synced(vm: VirtualMachine | undefined): { status?: string; message?: string } {
  return vm?.status?.conditions?.find(({ type }) => type === "Synced") ?? {};
}

/** It is said that the VM is not as declared, in a message that names all of this. */
function assertTold(vm: VirtualMachine, names: readonly string[]): void {
  const { status = "", message = "" } = synced(vm);
  assert.equal(status, "False", JSON.stringify(vm.status));
  for (const name of names) assert.ok(message.includes(name), `${name} in: ${message}`);
}

describe("a person's volume in the slot of a disk of ours", () => {
  it("is reported, never recorded, and outlives the VM", async () => {
    const here = await setUp();
    const { stage, id, data } = here;
    await edit(here, { delete: "scsi1" });
    const rescue = makeVolume(here, `vm-${id}-rescue`);
    await edit(here, { scsi1: `local-zfs:vm-${id}-rescue` });
    const vm = await resume(stage);
    assertTold(vm, ["data", `local-zfs:vm-${id}-rescue`, data]);
    assert.deepEqual(await recorded(stage), [data]);
    await remove(stage);
    assert.ok(rowsOf(here).includes(rescue), "a person's volume is not destroyed");
    assert.notEqual(rescue.vmid, Number(id));
  });

  it("is a person's as well where the server made it for them", async () => {
    const here = await setUp();
    const { stage, data } = here;
    await edit(here, { delete: "scsi1" });
    await edit(here, { scsi1: "local-zfs:6" });
    const made = rowOf(here, volumeAt(stage, here.id, "scsi1"));
    assertTold(await resume(stage), ["data", data]);
    await remove(stage);
    assert.ok(rowsOf(here).includes(made), "a person's volume is not destroyed");
  });

  it("is a person's where it is smaller than the recorded one, which is gone", async () => {
    const here = await setUp();
    const { stage, id, data } = here;
    const rows = rowsOf(here);
    await edit(here, { delete: "scsi1" });
    await edit(here, { delete: "unused0" });
    assert.ok(!rows.some(({ name }) => data === `local-zfs:${name}`));
    const rescue = makeVolume(here, `vm-${id}-rescue`, 2 * gib);
    await edit(here, { scsi1: `local-zfs:vm-${id}-rescue` });
    assertTold(await resume(stage), ["data", `vm-${id}-rescue`]);
    await remove(stage);
    assert.ok(rows.includes(rescue), "a person's volume is not destroyed");
  });

  it("leaves, and Berth's own is attached again", async () => {
    const here = await setUp();
    const { stage, id, data } = here;
    await edit(here, { delete: "scsi1" });
    makeVolume(here, `vm-${id}-rescue`);
    await edit(here, { scsi1: `local-zfs:vm-${id}-rescue` });
    await resume(stage);
    await edit(here, { delete: "scsi1" });
    await until(stage.world, () => false, 15 * 60_000);
    const vm = await getVm(stage.world.client, "web");
    assert.equal(synced(vm).status, "True", JSON.stringify(vm?.status));
    assert.equal(volumeAt(stage, id, "scsi1"), data);
  });
});

describe("the name of a disk's volume that is used again", () => {
  /** Our volume goes to another VM by hand, and its name to a new one, of 9 GiB. */
  async function reused(slot: string): Promise<Scene & { readonly theirs: Row }> {
    const here = await setUp();
    const { stage, id, data } = here;
    await ask(stage, ["POST", ""], { vmid: "900", name: "theirs" });
    await edit(here, { delete: "scsi1" });
    const target = { disk: "unused0", "target-vmid": "900", "target-disk": "scsi0" };
    await ask(stage, ["POST", `/${id}/move_disk`], target);
    const name = data.replace("local-zfs:", "");
    const theirs = makeVolume(here, name, 9 * gib);
    await edit(here, { [slot]: data });
    return { ...here, theirs };
  }

  it("proves nothing: the new volume is neither attached nor destroyed", async () => {
    const here = await reused("scsi5");
    const { stage, id, data, theirs } = here;
    assertTold(await resume(stage), ["data", data]);
    assert.equal(volumeAt(stage, id, "scsi1"), undefined);
    await remove(stage);
    assert.ok(rowsOf(here).includes(theirs), "a person's volume is not destroyed");
  });

  it("proves nothing where the new one is not attached either", async () => {
    const here = await reused("scsi5");
    const { stage, id, data, theirs } = here;
    await edit(here, { delete: "scsi5" });
    assert.equal(volumeAt(stage, id, "unused0"), data);
    assertTold(await resume(stage), ["data", data]);
    assert.equal(volumeAt(stage, id, "scsi1"), undefined);
    await stage.world.client.of(virtualMachineKind).delete(web);
    await until(stage.world, () => false, 15 * 60_000);
    assert.ok(rowsOf(here).includes(theirs), "a person's volume is not destroyed");
  });
});

describe("a disk that somebody puts into another slot", () => {
  for (const [slot, powerState] of [
    ["virtio1", "Stopped"],
    ["scsi5", "Stopped"],
    ["scsi5", "Running"],
  ] as const) {
    it(`is not attached twice: ${slot}, ${powerState}`, async () => {
      // Only a guest that runs lets a disk go: a blank disk has none.
      const filled = { source: { image: { name: "debian" } }, powerState } as const;
      const here = await setUp(powerState === "Running" ? filled : {});
      const { stage, id, data } = here;
      await edit(here, { delete: "scsi1" });
      await edit(here, { [slot]: data });
      const vm = await resume(stage);
      const text = stage.proxmox.cluster.state.guests[id]?.text ?? "";
      assert.equal(text.split(data).length - 1, 1, text);
      assertTold(vm, ["data", data, slot]);
      assert.deepEqual(await recorded(stage), [data]);
      const ours = rowOf(here, data);
      await remove(stage);
      assert.ok(!rowsOf(here).includes(ours), "it is still Berth's own");
    });
  }

  it("is not attached twice where Berth looks in between", async () => {
    const here = await setUp();
    const { stage, id, data } = here;
    await pause(stage, null);
    await edit(here, { delete: "scsi1", virtio1: data });
    await until(stage.world, () => false, 5 * 60_000);
    const text = stage.proxmox.cluster.state.guests[id]?.text ?? "";
    assert.equal(text.split(data).length - 1, 1, text);
  });
});
