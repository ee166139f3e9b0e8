import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { virtualMachineKind, type VirtualMachine } from "../api/index.ts";
import { eventsOf } from "./testing/events.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { condition, createVm, getVm, isReady, until } from "./testing/world.ts";

const root = { name: "root", size: "10Gi", storage: "local-zfs" };
const data = { name: "data", size: "2Gi", storage: "local-zfs" };

type Policy = VirtualMachine["spec"]["driftPolicy"];

/** A machine that stands, and the path of it on its node. */
async function standing(driftPolicy: Policy): Promise<{ stage: SimulatedWorld; path: string }> {
  const stage = await openProxmox();
  const { world } = stage;
  world.start();
  await createVm(world.client, "web", { disks: [root, data], driftPolicy });
  const isThere = await until(world, async () => isReady(await getVm(world.client, "web")));
  const vm = await vmOf(stage);
  assert.ok(isThere, JSON.stringify(vm.status));
  const { node = "", externalId = "" } = vm.status ?? {};
  return { stage, path: `/nodes/${node}/qemu/${externalId}` };
}

async function vmOf({ world }: SimulatedWorld): Promise<VirtualMachine> {
  const vm = await getVm(world.client, "web");
  assert.ok(vm);
  return vm;
}

/** Somebody does this on the hypervisor; and what Berth has sent a quarter of an hour later. */
async function byHand(
  stage: SimulatedWorld,
  request: Parameters<SimulatedWorld["byHand"]>[0],
): Promise<string[]> {
  const { world, requests } = stage;
  requests.splice(0);
  const done = stage.byHand(request);
  await until(world, () => false, 15 * 60_000);
  await done;
  return requests.filter(({ method }) => method !== "GET").map(({ path }) => path);
}

async function driftEvents(stage: SimulatedWorld): Promise<number> {
  const events = await eventsOf(stage.world.client);
  return events.filter(({ reason }) => reason === "Drifted").length;
}

function messageOf({ status }: VirtualMachine, type: string): string {
  return status?.conditions?.find((one) => one.type === type)?.message ?? "";
}

const larger = { disk: "scsi0", size: "20G" };

describe("a disk that somebody grew by hand", () => {
  const cases = [
    { driftPolicy: "Warn", synced: "False Drifted", events: 1 },
    { driftPolicy: "Ignore", synced: "True Succeeded", events: 0 },
  ] as const;
  for (const { driftPolicy, synced, events } of cases) {
    it(`is left so, and no failure, with driftPolicy: ${driftPolicy}`, async () => {
      const { stage, path } = await standing(driftPolicy);
      const sent = await byHand(stage, { method: "PUT", path: `${path}/resize`, params: larger });
      assert.deepEqual(sent, []);
      const vm = await vmOf(stage);
      assert.equal(vm.status?.failure, undefined);
      assert.equal(condition(vm, "Stalled"), "");
      assert.equal(condition(vm, "Ready"), "True Succeeded");
      assert.equal(condition(vm, "Synced"), synced);
      assert.match(messageOf(vm, "Synced"), /disks\[root\]\.size/);
      assert.equal(await driftEvents(stage), events);
    });
  }

  it("is refused with driftPolicy: Correct, and well once its size is declared", async () => {
    const { stage, path } = await standing("Correct");
    await byHand(stage, { method: "PUT", path: `${path}/resize`, params: larger });
    const { failure } = (await vmOf(stage)).status ?? {};
    assert.equal(failure?.category, "ReplacementRequired");
    assert.match(failure.message, /^Somebody changed this by hand.*size \(it has 20Gi\)/);
    assert.match(failure.remedy ?? "", /^Declare size: 20Gi for the disk root/);
    const merge = { spec: { disks: [{ ...root, size: "20Gi" }, data] } };
    const place = { namespace: "default", name: "web" };
    await stage.world.client.of(virtualMachineKind).patch(place, { merge });
    const isWell = await until(stage.world, async () => {
      const vm = await vmOf(stage);
      return isReady(vm) && condition(vm, "Synced") === "True Succeeded";
    });
    assert.ok(isWell, JSON.stringify((await vmOf(stage)).status));
  });
});

describe("a disk that somebody detached by hand", () => {
  for (const driftPolicy of ["Warn", "Ignore"] as const) {
    it(`stays so with driftPolicy: ${driftPolicy}, and is named`, async () => {
      const { stage, path } = await standing(driftPolicy);
      const params = { delete: "scsi1" };
      const sent = await byHand(stage, { method: "PUT", path: `${path}/config`, params });
      assert.deepEqual(sent, []);
      const vm = await vmOf(stage);
      assert.equal(vm.status?.failure, undefined);
      assert.equal(condition(vm, "Stalled"), "");
      assert.equal(condition(vm, "Ready"), "False Drifted");
      assert.match(messageOf(vm, "Ready"), /left so by driftPolicy: it lacks the disk data\./);
      assert.equal(condition(vm, "Provisioned"), "False Drifted");
      assert.match(messageOf(vm, "Synced"), /disks\[data\]/);
      const isOnlyThat = !messageOf(vm, "Synced").includes("root");
      assert.ok(isOnlyThat, messageOf(vm, "Synced"));
    });
  }
});

describe("a machine that somebody stopped by hand", () => {
  it("says so where that is left alone", async () => {
    const { stage, path } = await standing("Ignore");
    const sent = await byHand(stage, { method: "POST", path: `${path}/status/stop` });
    assert.deepEqual(sent, []);
    const vm = await vmOf(stage);
    assert.equal(condition(vm, "Ready"), "False Drifted");
    assert.match(messageOf(vm, "Ready"), /it is Stopped, and not Running\./);
  });
});
