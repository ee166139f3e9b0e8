import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hypervisorKind, virtualMachineKind } from "../api/index.ts";
import type { WrittenVirtualMachineSpec } from "../api/index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, until } from "./testing/world.ts";

const hourMs = 60 * 60_000;
const gib = 1024 ** 3;
const key = { namespace: "default", name: "web" };

function blank(storage: string): Partial<WrittenVirtualMachineSpec> {
  const disks = [{ name: "root", size: "5Gi", storage }];
  const place = { placement: { node: "pve1" }, powerState: "Stopped" } as const;
  return { source: { blank: {} }, disks, ...place };
}

/** Berth, with a VM that exists; answers its id. */
async function ready(
  stage: SimulatedWorld,
  storage: string,
  policy: "Report" | "DeleteOwned" | "DeleteProbable" = "Report",
): Promise<string> {
  const { world } = stage;
  const merge = { spec: { orphans: { policy } } };
  await world.client.of(hypervisorKind).patch({ name: "model" }, { merge });
  world.start();
  await createVm(world.client, "web", blank(storage));
  const isThere = await until(world, async () => isReady(await getVm(world.client, "web")), hourMs);
  const vm = await getVm(world.client, "web");
  assert.ok(isThere, JSON.stringify(vm?.status));
  return vm?.status?.externalId ?? "";
}

interface ByHand {
  readonly backing: string;
  readonly name: string;
  readonly id: string;
  readonly sizeBytes: number;
}

/** Somebody makes a volume without any task. */
function putVolume({ proxmox }: SimulatedWorld, { backing, name, id, sizeBytes }: ByHand): void {
  const { state, clock } = proxmox.cluster;
  const rows = state.volumes[backing] ?? [];
  state.volumes[backing] = rows;
  const size = { sizeBytes, usedBytes: sizeBytes };
  const row = { name, content: "images", format: "raw", createdMs: clock.nowMs() } as const;
  rows.push({ ...row, ...size, vmid: Number(id) });
}

function hasVolume({ proxmox }: SimulatedWorld, { backing, name }: ByHand): boolean {
  return proxmox.cluster.state.volumes[backing]?.some((row) => row.name === name) === true;
}

/** The name of the volume that a VM has as its only disk. */
function rootName({ proxmox }: SimulatedWorld, id: string): string {
  const text = proxmox.cluster.state.guests[id]?.text ?? "";
  const [, name = ""] = /^scsi0: [^:]+:([^,\n]+)/m.exec(text) ?? [];
  assert.match(name, /^\d+\/vm-\d+-/);
  return name;
}

/** A move to another storage is killed, and its declaration is taken back. */
async function killMove(
  stage: SimulatedWorld,
  { from, to, at }: { readonly from: string; readonly to: string; readonly at?: string },
): Promise<void> {
  const { world, proxmox } = stage;
  let times = 0;
  proxmox.faults.onStep({
    verdict: { kind: "kill" },
    times: 1,
    matches: ({ name }, step) => {
      const isIt = name.startsWith("qmmove") && (at === undefined || step.name === at);
      times += isIt ? 1 : 0;
      return isIt;
    },
  });
  const vms = world.client.of(virtualMachineKind);
  const spec = ({ disks }: Partial<WrittenVirtualMachineSpec>): object => ({ spec: { disks } });
  await vms.patch(key, { merge: spec(blank(to)) });
  assert.ok(await until(world, () => times > 0, hourMs));
  await vms.patch(key, { merge: spec(blank(from)) });
  await until(world, () => false, 10 * 60_000);
}

async function remove({ world }: SimulatedWorld): Promise<void> {
  await world.client.of(virtualMachineKind).delete(key);
  const isGone = await until(world, async () => (await getVm(world.client, "web")) === undefined);
  assert.ok(isGone, JSON.stringify((await getVm(world.client, "web"))?.status));
}

async function destroyByHand(stage: SimulatedWorld, id: string): Promise<void> {
  let isDone = false;
  const request = { method: "DELETE", path: `/nodes/pve1/qemu/${id}`, params: {} } as const;
  void stage.byHand(request).then(() => (isDone = true));
  assert.ok(await until(stage.world, () => isDone));
}

describe("a stranger's volume with a name that Berth once had", () => {
  it("survives where the log of our killed task has the name, and it was made later", async () => {
    const stage = await openProxmox("8.4");
    const id = await ready(stage, "local-zfs");
    await killMove(stage, { from: "local-zfs", to: "local", at: "copy begins" });
    const name = `${id}/vm-${id}-disk-0.raw`;
    const made = { backing: "pve1:/var/lib/vz", name, id, sizeBytes: 7 * gib };
    assert.equal(hasVolume(stage, made), false, "what the killed move left was removed");
    putVolume(stage, made);
    await remove(stage);
    assert.ok(hasVolume(stage, made));
  });

  it("survives on another node, when its VM was destroyed by hand and its object deleted", async () => {
    const stage = await openProxmox("8.4");
    const id = await ready(stage, "local-zfs");
    const name = `${id}/vm-${id}-disk-0.raw`;
    const made = { backing: "pve2:/var/lib/vz", name, id, sizeBytes: 5 * gib };
    putVolume(stage, made);
    await killMove(stage, { from: "local-zfs", to: "local", at: "copy begins" });
    await destroyByHand(stage, id);
    await until(stage.world, () => false, 2 * 60_000);
    await remove(stage);
    assert.ok(hasVolume(stage, made));
  });

  it("survives on another node under DeleteOwned, when object and VM are gone", async () => {
    const stage = await openProxmox("8.4");
    const id = await ready(stage, "local", "DeleteOwned");
    const { client } = stage.world;
    for (const other of ["a", "b", "c"]) await createVm(client, other, blank("local"));
    const name = rootName(stage, id);
    const made = { backing: "pve2:/var/lib/vz", name, id, sizeBytes: 5 * gib };
    putVolume(stage, made);
    const vms = client.of(virtualMachineKind);
    const isUp = await until(stage.world, async () => isReady(await getVm(client, "c")), hourMs);
    assert.ok(isUp);
    await vms.patch(key, { merge: { metadata: { annotations: { "berth.dev/paused": "true" } } } });
    await until(stage.world, () => false, 10_000);
    await vms.delete(key);
    await vms.patch(key, { merge: { metadata: { finalizers: null } } });
    await destroyByHand(stage, id);
    await until(stage.world, () => false, 4 * hourMs);
    assert.ok(hasVolume(stage, made));
  });

  it("survives under DeleteProbable, when it was made after the operation was settled", async () => {
    const stage = await openProxmox("8.4");
    const id = await ready(stage, "local", "DeleteProbable");
    await killMove(stage, { from: "local", to: "local-zfs" });
    const { volumes } = stage.proxmox.cluster.state;
    const rows = volumes["pve1:rpool/data"] ?? [];
    assert.ok(
      rows.every(({ vmid }) => vmid !== Number(id)),
      "nothing is left",
    );
    const name = `vm-${id}-disk-0`;
    const made = { backing: "pve1:rpool/data", name, id, sizeBytes: 5 * gib };
    putVolume(stage, made);
    await remove(stage);
    await until(stage.world, () => false, 3 * hourMs);
    assert.ok(hasVolume(stage, made));
  });
});
