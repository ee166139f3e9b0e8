import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { claimKind, hypervisorKind, virtualMachineKind } from "../../api/index.ts";
import type { Claim, Hypervisor } from "../../api/index.ts";
import { keeper, remove, stand, volumes } from "../testing/keeping.ts";
import { openProxmox } from "../testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, listClaims, openWorld, until } from "../testing/world.ts";
import type { World } from "../testing/world.ts";
import { planInUse } from "./plan.ts";

async function hypervisorOf({ client }: World): Promise<Hypervisor | undefined> {
  const { items } = await client.of(hypervisorKind).list();
  return items.find(({ metadata }) => metadata.name === "model");
}

async function inUse(world: World): Promise<{ reason?: string; message?: string }> {
  const { status } = (await hypervisorOf(world)) ?? {};
  return status?.conditions?.find(({ type }) => type === "InUse") ?? {};
}

/** The object goes without its VM: somebody took the finalizer off. */
async function strip({ client }: World, name: string): Promise<void> {
  const vms = client.of(virtualMachineKind);
  const at = { namespace: "default", name };
  await vms.delete(at);
  await vms.patch(at, { merge: { metadata: { finalizers: null } } });
}

const nothing = { vms: [], held: 0, retaining: [] };

describe("a Hypervisor that is deleted", () => {
  it("goes where nothing is left on it", () => {
    assert.equal(planInUse(nothing), undefined);
  });

  it("is not lost to VirtualMachines that still name it", () => {
    const found = planInUse({ ...nothing, vms: ["default/web", "default/db"] });
    assert.equal(found?.reason, "VirtualMachinesRemain");
    assert.match(found?.message ?? "", /default\/web and 1 more/);
  });

  it("is not lost while a Claim is Bound: nobody could destroy its VM any more", () => {
    assert.equal(planInUse({ ...nothing, held: 1 })?.reason, "ClaimsRemain");
  });

  it("is not lost to the disks that a disk-holder VM retains on it", () => {
    const retaining = [{ metadata: { name: "c-1" }, spec: retainingSpec }] as unknown as Claim[];
    const found = planInUse({ ...nothing, retaining });
    assert.equal(found?.reason, "RetainedDisksRemain");
    assert.match(found?.message ?? "", /default\/web .* Retain: zfs:vm-7-disk-0\. .*claim c-1/);
  });

  it("keeps its finalizer while a Claim of it is Bound, and its VM has lost its object", async () => {
    const world = await openWorld();
    const { client } = world;
    const run = world.start();
    await createVm(client, "web");
    assert.ok(await until(world, async () => isReady(await getVm(client, "web"))));
    await run.stop();
    const [claim] = await listClaims(client);
    assert.equal(claim?.spec.state, "Bound");
    await strip(world, "web");
    world.start();
    await client.of(hypervisorKind).delete({ name: "model" });
    await until(world, () => false, 120_000);
    assert.equal((await inUse(world)).reason, "ClaimsRemain");
    assert.equal(world.model.machines.size, 1);
    assert.ok(await hypervisorOf(world), "who would see to the VM?");
  });

  it("keeps its finalizer while a disk-holder VM retains a disk, and says what to do", async () => {
    const stage = await openProxmox();
    const { world } = stage;
    world.start();
    await stand(stage);
    await remove(stage);
    const { externalId } = await keeper(stage);
    await world.client.of(hypervisorKind).delete({ name: "model" });
    await until(world, () => false, 120_000);
    assert.ok(await hypervisorOf(world), "nobody could give the disk back any more");
    const { reason, message = "" } = await inUse(world);
    assert.equal(reason, "RetainedDisksRemain");
    assert.match(message, new RegExp(`disk-holder VM ${externalId} holds disks of default/web`));
    const claims = (await listClaims(world.client)).filter(({ spec }) => spec.role !== "VM");
    const name = claims[0]?.metadata.name ?? "";
    assert.ok(message.includes(`kubectl delete claim ${name}`), message);
    await world.client.of(claimKind).delete({ name });
    assert.ok(await until(world, async () => (await hypervisorOf(world)) === undefined));
    assert.equal(volumes(stage).length, 1, "the disk stays where it is");
  });
});

const retainingSpec = {
  role: "DiskHolder",
  state: "Released",
  externalId: "7",
  owner: { namespace: "default", name: "web" },
  volumes: [{ id: "zfs:vm-7-disk-0", disk: "data", onDelete: "Retain" }],
};
