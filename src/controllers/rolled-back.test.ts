import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  hypervisorKind,
  orphanKind,
  virtualMachineKind,
  type VirtualMachine,
} from "../api/index.ts";
import { openProxmox, type SimulatedWorld } from "./testing/simulated-proxmox.ts";
import { blank, hourMs, minuteMs } from "./testing/volumes-by-hand.ts";
import {
  createVm,
  getVm,
  isReady,
  listClaims,
  until,
  type Incarnation,
  type World,
} from "./testing/world.ts";

const at = { namespace: "default", name: "db" };

interface RolledBack {
  readonly stage: SimulatedWorld;
  /** The data of before the VM was created, under the run that it had then. */
  readonly world: World;
  readonly berth: Incarnation;
  /** The VM that it does not know. */
  readonly id: string;
}

/** A VM is created, the data folder goes back to before it, and the object is applied again. */
async function rollBack(): Promise<RolledBack> {
  const stage = await openProxmox("8.4");
  const first = stage.world.start();
  await createVm(stage.world.client, "web", blank);
  assert.ok(await isUp(stage.world, "web"));
  const world = await stage.world.copy();
  await createVm(stage.world.client, "db", blank);
  assert.ok(await isUp(stage.world, "db"));
  const [id = ""] = named(stage, "db");
  first.crash();
  const berth = world.start();
  await until(world, () => false, minuteMs);
  await createVm(world.client, "db", blank);
  return { stage, world, berth, id };
}

async function isUp(world: World, name: string): Promise<boolean> {
  return until(world, async () => isReady(await getVm(world.client, name)), hourMs);
}

function named({ proxmox }: SimulatedWorld, name: string): string[] {
  const guests = Object.entries(proxmox.cluster.state.guests);
  return guests.flatMap(([id, { text }]) => (text.includes(`\nname: ${name}\n`) ? [id] : []));
}

async function stalled({ world }: RolledBack): Promise<VirtualMachine> {
  const isSaid = await until(world, async () => {
    const { failure } = (await getVm(world.client, "db"))?.status ?? {};
    return failure?.category === "IdentityConflict";
  });
  const vm = await getVm(world.client, "db");
  assert.ok(isSaid && vm, JSON.stringify(vm?.status));
  return vm;
}

async function allowAdoption({ client }: World): Promise<void> {
  const all = { adopt: true, externalId: true, storages: ["*"], networks: ["*"] };
  const merge = { spec: { allow: [{ namespace: "*", ...all }] } };
  await client.of(hypervisorKind).patch({ name: "model" }, { merge });
}

async function destroyByHand({ stage, world, id }: RolledBack): Promise<void> {
  const sent = { isDone: false };
  const path = `/nodes/pve1/qemu/${id}`;
  void stage.asRoot({ method: "DELETE", path, params: {} }).then(() => (sent.isDone = true));
  assert.ok(await until(world, () => sent.isDone, minuteMs));
}

describe("a VM that was created before Berth's data was rolled back", () => {
  it("keeps a second one from being created for its name, and is named with what to do", async () => {
    const scene = await rollBack();
    const { stage, world, berth, id } = scene;
    const { status } = await stalled(scene);
    assert.match(status?.failure?.message ?? "", new RegExp(`VM ${id} .*default/db.*no Claim`));
    assert.match(status?.failure?.remedy ?? "", new RegExp(`adopt.*externalId: "${id}"`));
    berth.crash();
    world.start();
    await until(world, () => false, hourMs);
    await stalled(scene);
    assert.deepEqual(named(stage, "db"), [id], "one object has two VMs");
  });

  it("does so no longer once it is removed on the hypervisor", async () => {
    const scene = await rollBack();
    const { stage, world, id } = scene;
    await stalled(scene);
    await destroyByHand(scene);
    assert.ok(await isUp(world, "db"), JSON.stringify(await getVm(world.client, "db")));
    const [made, ...others] = named(stage, "db");
    assert.ok(made !== undefined && made !== id);
    assert.deepEqual(others, []);
  });

  it("becomes the object's own where the object says so", async () => {
    const scene = await rollBack();
    const { stage, world, id } = scene;
    await stalled(scene);
    await allowAdoption(world);
    const merge = { spec: { adopt: "IfPresent", externalId: id } };
    await world.client.of(virtualMachineKind).patch(at, { merge });
    assert.ok(await isUp(world, "db"), JSON.stringify(await getVm(world.client, "db")));
    assert.deepEqual(named(stage, "db"), [id]);
    const claims = await listClaims(world.client);
    const claim = claims.find(({ spec }) => spec.owner.name === "db");
    assert.deepEqual([claim?.spec.externalId, claim?.spec.state], [id, "Bound"]);
  });

  it("is adopted as an Orphan after the object is deleted, which leaves it alone", async () => {
    const scene = await rollBack();
    const { stage, world, id } = scene;
    await stalled(scene);
    await world.client.of(virtualMachineKind).delete(at);
    assert.ok(await until(world, async () => (await getVm(world.client, "db")) === undefined));
    assert.deepEqual(named(stage, "db"), [id]);
    const orphans = world.client.of(orphanKind);
    const found = async () => {
      return (await orphans.list()).items.find(({ spec }) => spec.externalId === id);
    };
    assert.ok(await until(world, async () => (await found()) !== undefined, 6 * hourMs));
    const { name = "" } = (await found())?.metadata ?? {};
    await allowAdoption(world);
    const merge = { spec: { decision: "Adopt", adoptAs: at, confirm: id } };
    await orphans.patch({ name }, { merge });
    assert.ok(await isUp(world, "db"), JSON.stringify(await getVm(world.client, "db")));
    assert.deepEqual(named(stage, "db"), [id]);
  });

  it("does not keep one from being created where it is only a copy of it", async () => {
    const scene = await rollBack();
    const { stage, world, id } = scene;
    await stalled(scene);
    const { guests } = stage.proxmox.cluster.state;
    const guest = guests[id];
    assert.ok(guest);
    // A restore with new identities keeps the description.
    const uuid = "uuid=00000000-0000-4000-8000-00000000c0b1";
    guests[id] = { ...guest, text: guest.text.replace(/uuid=[0-9a-f-]+/, uuid) };
    assert.ok(await isUp(world, "db"), JSON.stringify(await getVm(world.client, "db")));
    assert.equal(named(stage, "db").length, 2);
  });
});
