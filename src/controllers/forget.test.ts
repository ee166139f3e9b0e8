import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { annotations, virtualMachineKind } from "../api/index.ts";
import type { VirtualMachine } from "../api/index.ts";
import type { PveReply } from "../drivers/proxmox/index.ts";
import { eventsOf } from "./testing/events.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import {
  condition,
  createVm,
  getVm,
  isReady,
  listClaims,
  openWorld,
  until,
  type World,
} from "./testing/world.ts";

const web = { namespace: "default", name: "web" };
const disks = [{ name: "root", size: "10Gi", storage: "local-zfs" }];
const minuteMs = 60_000;

function answer(status: number, reason: string): PveReply {
  return { type: "answered", status, reason, body: "", from: "pve1" };
}

async function make(world: World, spec: object = {}): Promise<VirtualMachine> {
  world.start();
  await createVm(world.client, "web", spec);
  assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
  return vmOf(world);
}

async function vmOf({ client }: World): Promise<VirtualMachine> {
  const vm = await getVm(client, "web");
  assert.ok(vm);
  return vm;
}

async function remove({ client }: World): Promise<void> {
  await client.of(virtualMachineKind).delete(web);
}

async function forget({ client }: World, reason: string): Promise<void> {
  const merge = { metadata: { annotations: { [annotations.forget]: reason } } };
  await client.of(virtualMachineKind).patch(web, { merge });
}

async function goes(world: World, withinMs = 2 * minuteMs): Promise<void> {
  const isGone = await until(
    world,
    async () => (await getVm(world.client, "web")) === undefined,
    withinMs,
  );
  assert.ok(isGone, JSON.stringify((await getVm(world.client, "web"))?.status));
}

async function demandReleased(world: World, reason: string): Promise<void> {
  const [claim, ...others] = await listClaims(world.client);
  assert.deepEqual(others, []);
  assert.equal(claim?.spec.state, "Released");
  assert.equal(claim.spec.releaseReason, `forgotten: ${reason}`);
}

async function toldOf(world: World): Promise<string> {
  await until(world, () => false, minuteMs);
  const told = (await eventsOf(world.client)).filter(({ reason }) => reason === "Forgotten");
  return told.map(({ note }) => note).join("\n");
}

function writes({ requests }: SimulatedWorld): number {
  return requests.filter(({ method }) => method !== "GET").length;
}

describe("berth.dev/forget, where the hypervisor answers", () => {
  test("lets go of a machine whose node is dead for good", async () => {
    const stage = await openProxmox();
    const { world, proxmox } = stage;
    const { status } = await make(world, { disks });
    const { externalId = "", node = "" } = status ?? {};
    proxmox.crashNode(node);
    await until(world, () => false, 2 * minuteMs);
    const before = writes(stage);
    const file = proxmox.cluster.state.guests[externalId]?.text;
    await remove(world);
    await until(world, () => false, 30 * minuteMs);
    const { failure } = (await vmOf(world)).status ?? {};
    assert.equal(failure?.category, "NodeUnhealthy", "without a word it waits");
    assert.match(failure.remedy ?? "", /gone for good: berth forget vm\/web -n default --reason/);
    await forget(world, "the node burned");
    await goes(world, 1_000);
    await demandReleased(world, "the node burned");
    assert.match(await toldOf(world), /^Let go without being seen: .*the node burned$/);
    assert.equal(writes(stage), before);
    assert.equal(proxmox.cluster.state.guests[externalId]?.text, file);
  });

  test("lets go also of one whose work on the dead node nobody can look at", async () => {
    const stage = await openProxmox("8.4", { timing: { copyPerGibMs: 30_000 } });
    const { world, proxmox } = stage;
    const { status } = await make(world, { disks });
    const moved = disks.map((disk) => ({ ...disk, storage: "local" }));
    await world.client.of(virtualMachineKind).patch(web, { merge: { spec: { disks: moved } } });
    const isOpen = async (): Promise<boolean> => {
      return (await vmOf(world)).status?.operation?.step === "MoveDisk";
    };
    assert.ok(await until(world, isOpen));
    await until(world, () => false, 15_000);
    assert.ok((await vmOf(world)).status?.operation?.task);
    proxmox.crashNode(status?.node ?? "");
    await forget(world, "the node burned");
    await remove(world);
    await goes(world);
    await demandReleased(world, "the node burned");
  });

  test("leaves alone who has the id now, and says beforehand that this is the way", async () => {
    const world = await openWorld();
    await make(world);
    const [machine] = world.model.machines.values();
    assert.ok(machine);
    const identity = "11111111-2222-4333-8444-555555555555";
    const { mark: _gone, ...bare } = machine;
    const stranger = { ...bare, identity, version: machine.version + 1 };
    world.model.machines.set(machine.id, stranger);
    await remove(world);
    const isTold = async (): Promise<boolean> => {
      return condition(await vmOf(world), "Stalled") === "True IdentityConflict";
    };
    assert.ok(await until(world, isTold));
    const { failure } = (await vmOf(world)).status ?? {};
    assert.match(
      failure?.remedy ?? "",
      /^To let the object go .*: berth forget vm\/web -n default/,
    );
    const effects = world.model.effects.length;
    await forget(world, "somebody else has the id");
    await goes(world, 1_000);
    await demandReleased(world, "somebody else has the id");
    assert.match(await toldOf(world), /^Let go as it is, and not touched: /);
    assert.equal(world.model.effects.length, effects);
    assert.equal(world.model.machines.get(machine.id), stranger);
  });

  test("one look that fails is repeated: the machine is then let go in good order", async () => {
    const ill = { times: 0 };
    const stage = await openProxmox("8.4", {
      between: async (request, send) => {
        const isLook = request.method === "GET" && request.path.endsWith("/pending");
        if (!isLook || ill.times === 0) return send(request);
        ill.times -= 1;
        return answer(500, "ipcc_send_rec[1] failed: Connection refused");
      },
    });
    const { world, proxmox } = stage;
    const { status } = await make(world, { disks });
    ill.times = 1;
    await forget(world, "moved by hand");
    await remove(world);
    await goes(world);
    assert.equal(ill.times, 0);
    await demandReleased(world, "moved by hand");
    assert.match(await toldOf(world), /stays on the hypervisor .*moved by hand$/);
    const text = proxmox.cluster.state.guests[status?.externalId ?? ""]?.text ?? "";
    assert.match(text, /released/i);
  });

  test("where even the mark may not be changed, the machine keeps it and is let go", async () => {
    const ill = { is: false };
    const stage = await openProxmox("8.4", {
      between: async (request, send) => {
        const isRefused = ill.is && request.method !== "GET" && request.path.endsWith("/config");
        return isRefused ? answer(403, "Permission check failed (/vms/100)") : send(request);
      },
    });
    const { world, proxmox } = stage;
    const { status } = await make(world, { disks });
    const { externalId = "" } = status ?? {};
    const file = proxmox.cluster.state.guests[externalId]?.text;
    ill.is = true;
    await forget(world, "no longer ours to change");
    await remove(world);
    await goes(world);
    await demandReleased(world, "no longer ours to change");
    assert.equal(proxmox.cluster.state.guests[externalId]?.text, file);
  });
});
