import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { claimKind, virtualMachineKind, type Claim, type VirtualMachine } from "../api/index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { createVm, getVm, isReady, listClaims, until, type World } from "./testing/world.ts";

const root = { name: "root", size: "10Gi", storage: "local-zfs" };
const data = { name: "data", size: "2Gi", storage: "local-zfs" };
const at = { namespace: "default", name: "web" };

interface Backup {
  readonly vm: VirtualMachine;
  readonly claim: Claim;
}

async function backUp({ client }: World): Promise<Backup> {
  const [claim] = await listClaims(client);
  const vm = await getVm(client, "web");
  assert.ok(vm && claim);
  return { vm, claim };
}

/** As a restored data folder shows them: both objects as they were, whatever stands by now. */
async function restore(world: World, { vm, claim }: Backup): Promise<void> {
  const now = await backUp(world);
  await world.client.of(virtualMachineKind).update({ ...now.vm, spec: vm.spec });
  await world.client.of(claimKind).update({ ...now.claim, spec: claim.spec });
}

async function edited(world: World, spec: object): Promise<VirtualMachine> {
  const { metadata } = await world.client.of(virtualMachineKind).patch(at, { merge: { spec } });
  return settled(world, metadata.generation);
}

async function settled(world: World, generation: number | undefined): Promise<VirtualMachine> {
  const isAtRest = await until(world, async () => {
    const vm = await getVm(world.client, "web");
    return isReady(vm) && vm?.status?.appliedGeneration === generation;
  });
  const vm = await getVm(world.client, "web");
  assert.ok(vm && isAtRest, JSON.stringify([vm?.status, world.log], undefined, 1));
  return vm;
}

function configOf({ proxmox }: SimulatedWorld, id = ""): string {
  return proxmox.cluster.state.guests[id]?.text ?? "";
}

interface Restored {
  readonly stage: SimulatedWorld;
  readonly vm: VirtualMachine;
}

/** A machine that got the disk `data` after the backup was made to which Berth then went back. */
async function restoredWith(disksThen: readonly object[]): Promise<Restored> {
  const stage = await openProxmox();
  const { world } = stage;
  const before = world.start();
  await createVm(world.client, "web", { disks: [root] });
  await settled(world, 1);
  await edited(world, { disks: disksThen });
  const backup = await backUp(world);
  await edited(world, { disks: [root, data] });
  await before.stop();
  await restore(world, backup);
  world.start();
  const { metadata } = (await getVm(world.client, "web")) ?? {};
  const vm = await settled(world, metadata?.generation);
  await until(world, () => false, 5 * 60_000);
  return { stage, vm };
}

describe("a disk that came after the backup to which Berth went back", () => {
  it("stays in the machine, and is told as one that nothing declares", async () => {
    const { stage, vm } = await restoredWith([root]);
    const { externalId, undeclared = [] } = vm.status ?? {};
    assert.match(configOf(stage, externalId), /^scsi1: local-zfs:/m);
    assert.deepEqual(
      undeclared.map(({ device }) => device),
      ["scsi1"],
    );
  });

  it("is not destroyed by an entry that spoke of an earlier one", async () => {
    const { stage, vm } = await restoredWith([root, { ...data, state: "Absent" }]);
    assert.match(configOf(stage, vm.status?.externalId), /^scsi1: local-zfs:/m);
    assert.equal(vm.status?.undeclared?.[0]?.device, "scsi1");
  });

  it("is the object's again once it is declared, and goes with its entry", async () => {
    const { stage, vm } = await restoredWith([root]);
    const { world } = stage;
    const before = configOf(stage, vm.status?.externalId);
    const declared = await edited(world, { disks: [root, data] });
    assert.equal(configOf(stage, vm.status?.externalId), before);
    assert.deepEqual(declared.status?.undeclared, []);
    const removed = await edited(world, { disks: [root] });
    assert.doesNotMatch(configOf(stage, vm.status?.externalId), /^scsi1: /m);
    assert.equal(removed.status?.detachedDisks?.[0]?.name, "data");
  });
});
