import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { VirtualMachine, WrittenVirtualMachineSpec } from "../api/index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { condition, createVm, getVm, isReady, until } from "./testing/world.ts";

const disks = [{ name: "root", size: "10Gi", storage: "local-zfs" }];

/** A VM that runs, whose guest agent has answered. */
async function running(
  stage: SimulatedWorld,
  spec: Partial<WrittenVirtualMachineSpec> = {},
): Promise<string> {
  const { world } = stage;
  world.start();
  await createVm(world.client, "web", { disks, ...spec });
  const isUp = await until(world, async () => {
    const vm = await getVm(world.client, "web");
    return isReady(vm) && vm?.status?.addresses !== undefined;
  });
  const vm = await getVm(world.client, "web");
  assert.ok(isUp, JSON.stringify(vm?.status));
  return vm?.status?.externalId ?? "";
}

/** Somebody destroys it with its disks. */
function destroy({ proxmox }: SimulatedWorld, id: string): { node: string; text: string } {
  const { node = "", text = "" } = proxmox.cluster.state.guests[id] ?? {};
  proxmox.killMachine(Number(id));
  proxmox.removeGuestFile(Number(id));
  const { volumes } = proxmox.cluster.state;
  for (const { name } of volumes[`${node}:rpool/data`] ?? []) {
    if (name.includes(`-${id}-`)) proxmox.removeVolume(node, `local-zfs:${name}`);
  }
  return { node, text };
}

async function failing(
  { world }: SimulatedWorld,
  category: string,
): Promise<VirtualMachine | undefined> {
  const isTold = await until(world, async () => {
    return (await getVm(world.client, "web"))?.status?.failure?.category === category;
  });
  const vm = await getVm(world.client, "web");
  assert.ok(isTold, JSON.stringify(vm?.status));
  return vm;
}

async function missingText(stage: SimulatedWorld): Promise<string> {
  const { failure } = (await failing(stage, "Missing"))?.status ?? {};
  return `${failure?.message ?? ""} ${failure?.remedy ?? ""}`;
}

describe("the status of a VM that somebody took away", () => {
  it("claims no power, addresses, disks or NICs, and does not run", async () => {
    const stage = await openProxmox();
    const id = await running(stage);
    destroy(stage, id);
    const vm = await failing(stage, "Missing");
    const { powerState, addresses, disks: seen, networks, undeclared } = vm?.status ?? {};
    assert.deepEqual(
      [powerState, addresses, seen, networks, undeclared],
      Array.from({ length: 5 }, () => undefined),
    );
    assert.equal(vm?.status?.appliedGeneration, undefined);
    for (const type of ["Ready", "Provisioned", "Running", "AgentReady"]) {
      assert.match(condition(vm, type), /^False /, type);
    }
    assert.equal(vm?.status?.externalId, id, "it is still found by its id");
  });

  it("says that its disks are gone, and what can be done", async () => {
    const stage = await openProxmox();
    destroy(stage, await running(stage));
    assert.match(await missingText(stage), /its disks' data is gone/);
  });

  it("says which of its disks still exist, and that deleting destroys them", async () => {
    const stage = await openProxmox();
    const id = await running(stage);
    stage.proxmox.killMachine(Number(id));
    stage.proxmox.removeGuestFile(Number(id));
    const text = await missingText(stage);
    assert.match(text, new RegExp(`still exist: local-zfs:vm-${id}-disk-0\\.`));
    assert.match(text, /if you delete the object, Berth destroys them/);
    assert.doesNotMatch(text, /data is gone/);
  });

  it("claims nothing of it where somebody else's VM has its id", async () => {
    const stage = await openProxmox();
    const id = await running(stage);
    const { node } = destroy(stage, id);
    stage.proxmox.writeGuestFile(node, Number(id), "name: other\n");
    const vm = await failing(stage, "IdentityConflict");
    assert.equal(vm?.status?.powerState, "Unknown");
    assert.equal(vm?.status?.addresses, undefined);
    assert.match(condition(vm, "Running"), /^Unknown /);
  });

  for (const driftPolicy of ["Warn", "Ignore"] as const) {
    it(`is Ready after it was recreated with its disks, with driftPolicy ${driftPolicy}`, async () => {
      const stage = await openProxmox();
      const { world, proxmox } = stage;
      const id = await running(stage, { onMissing: "Recreate", driftPolicy });
      destroy(stage, id);
      assert.ok(await until(world, () => proxmox.cluster.state.guests[id] !== undefined));
      await until(world, () => false, 120_000);
      const vm = await getVm(world.client, "web");
      assert.match(proxmox.cluster.state.guests[id]?.text ?? "", /^scsi0: local-zfs:.*size=10G/m);
      assert.ok(isReady(vm), JSON.stringify(vm?.status));
    });
  }
});
