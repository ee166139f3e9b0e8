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

describe("a machine that is off, with a disk that somebody grew by hand", () => {
  it("is started again, and goes on saying that the disk cannot shrink", async () => {
    const { stage, path } = await standing("Correct");
    await byHand(stage, { method: "PUT", path: `${path}/resize`, params: larger });
    const { node = "", externalId = "" } = (await vmOf(stage)).status ?? {};
    stage.proxmox.cluster.setMachine(node, Number(externalId), undefined);
    const isUp = await until(stage.world, async () => {
      const vm = await vmOf(stage);
      const isSaid = condition(vm, "Synced") === "False ReplacementRequired";
      return stage.requests.some((one) => one.path.endsWith("/status/start")) && isSaid;
    });
    const vm = await vmOf(stage);
    assert.ok(isUp, JSON.stringify(vm.status));
    assert.equal(condition(vm, "Ready"), "True Succeeded");
    assert.equal(vm.status?.powerState, "Running");
  });

  it("is stopped where that is declared", async () => {
    const { stage, path } = await standing("Correct");
    await byHand(stage, { method: "PUT", path: `${path}/resize`, params: larger });
    const merge = { spec: { powerState: "Stopped" } };
    const place = { namespace: "default", name: "web" };
    await stage.world.client.of(virtualMachineKind).patch(place, { merge });
    const isOff = await until(stage.world, async () => {
      return condition(await vmOf(stage), "Running") === "False Stopped";
    });
    assert.ok(isOff, JSON.stringify((await vmOf(stage)).status));
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

/** The server refuses to unplug what is booted from, and keeps the removal for the next start. */
async function detachBootDisk(stage: SimulatedWorld, path: string): Promise<void> {
  const request = { method: "PUT", path: `${path}/config`, params: { delete: "scsi0" } } as const;
  const refused = assert.rejects(stage.byHand(request), /hotplug problem/);
  await until(stage.world, () => false, 60_000);
  await refused;
}

function configOf({ proxmox }: SimulatedWorld): string {
  return Object.values(proxmox.cluster.state.guests)[0]?.text ?? "";
}

describe("a boot disk that somebody detached by hand while the machine runs", () => {
  it("is kept with driftPolicy: Correct: its removal is taken back", async () => {
    const { stage, path } = await standing("Correct");
    await detachBootDisk(stage, path);
    const vm = await vmOf(stage);
    assert.equal(vm.status?.failure, undefined);
    assert.equal(condition(vm, "Ready"), "True Succeeded");
    assert.equal(condition(vm, "Synced"), "True Succeeded");
    assert.doesNotMatch(configOf(stage), /PENDING/);
    assert.match(configOf(stage), /^scsi0: /m);
    assert.match(configOf(stage), /^boot: order=scsi0/m);
  });

  const cases = [
    { driftPolicy: "Warn", synced: "False Drifted" },
    { driftPolicy: "Ignore", synced: "False RestartRequired" },
  ] as const;
  for (const { driftPolicy, synced } of cases) {
    it(`is shown as attached until the restart with driftPolicy: ${driftPolicy}`, async () => {
      const { stage, path } = await standing(driftPolicy);
      await detachBootDisk(stage, path);
      await until(stage.world, () => false, 15 * 60_000);
      const vm = await vmOf(stage);
      const devices = vm.status?.disks?.map(({ name, device }) => [name, device]);
      assert.deepEqual(devices?.sort(), [
        ["data", "scsi1"],
        ["root", "scsi0"],
      ]);
      assert.equal(condition(vm, "Provisioned"), "True Succeeded");
      assert.equal(condition(vm, "Ready"), "True Succeeded");
      assert.equal(condition(vm, "Synced"), synced);
      assert.match(messageOf(vm, "Synced"), /disks\[root\]/);
    });
  }
});

describe("a boot disk whose removal by hand was completed by a restart", () => {
  it("is attached again at once, and no old failure is told", async () => {
    const { stage, path } = await standing("Correct");
    const stop = { method: "POST", path: `${path}/status/stop` } as const;
    const detach = { method: "PUT", path: `${path}/config`, params: { delete: "scsi0" } } as const;
    const done = Promise.allSettled([stage.byHand(detach), stage.byHand(stop)]);
    const isBack = await until(
      stage.world,
      async () => {
        const isWhole = /^scsi0: /m.test(configOf(stage)) && !configOf(stage).includes("PENDING");
        const isUp = stage.requests.filter((one) => one.path.endsWith("/start")).length > 1;
        return isWhole && isUp && isReady(await vmOf(stage));
      },
      3 * 60_000,
    );
    await done;
    assert.ok(isBack, `${configOf(stage)}${JSON.stringify((await vmOf(stage)).status)}`);
    assert.equal((await vmOf(stage)).status?.failure, undefined);
  });
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
