import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { virtualMachineKind, vmImageKind } from "../api/index.ts";
import type { VirtualMachine, VMImage } from "../api/index.ts";
import type { Lock } from "../hypervisor/index.ts";
import { eventsOf } from "./testing/events.ts";
import {
  condition,
  createVm,
  getVm,
  isReady,
  openWorld,
  until,
  type World,
} from "./testing/world.ts";

const web = { namespace: "default", name: "web" };
const backup: Lock = { kind: "Backup", detail: "backup", state: "Held" };

async function readyMachine(): Promise<World> {
  const world = await openWorld();
  world.start();
  await createVm(world.client, "web");
  assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
  return world;
}

function lock({ model }: World, held: Lock | undefined): void {
  const [machine] = model.machines.values();
  assert.ok(machine);
  machine.version += 1;
  if (held === undefined) delete machine.lock;
  else machine.lock = held;
}

async function editCores({ client }: World, cores: number): Promise<void> {
  const merge = { spec: { cpu: { cores }, updatePolicy: "Reboot" } };
  await client.of(virtualMachineKind).patch(web, { merge });
}

async function current({ client }: World): Promise<VirtualMachine> {
  const vm = await getVm(client, "web");
  assert.ok(vm);
  return vm;
}

async function toldOf({ client }: World): Promise<string[]> {
  const told = (await eventsOf(client)).filter(({ reason }) => reason === "Waiting");
  return told.map(({ note }) => note);
}

function linesOf({ log }: World): string[] {
  return log.filter((line) => /^info waits .*"for":"Lock"/.test(line));
}

const isWaiting = async (world: World): Promise<boolean> => {
  return (await current(world)).status?.waitingFor?.kind === "Lock";
};

describe("an edit that waits behind a lock", () => {
  it("is told by one Event and one line of log, however often it looks", async () => {
    const world = await readyMachine();
    lock(world, backup);
    await editCores(world, 4);
    await until(world, () => false, 11 * 60_000);
    const vm = await current(world);
    assert.match(condition(vm, "Ready"), /^True/);
    assert.equal(condition(vm, "Synced"), "False Waiting");
    assert.deepEqual(await toldOf(world), ["Waits for the lock: backup."]);
    const [line = "", ...others] = linesOf(world);
    assert.deepEqual(others, []);
    const facts = JSON.parse(line.replace("info waits ", ""));
    const detail = "Waits for the lock: backup.";
    const about = { object: "VirtualMachine default/web", hypervisor: "model" };
    assert.deepEqual(facts, { ...about, for: "Lock", detail });
  });

  it("is in the status at once, though something else was written a moment ago", async () => {
    const world = await readyMachine();
    lock(world, backup);
    await editCores(world, 4);
    assert.ok(await until(world, () => isWaiting(world), 1_000));
    assert.equal((await current(world)).status?.observedGeneration, 2);
    // Another edit while it waits for the same is seen at once as well.
    await editCores(world, 3);
    const isSeen = async (): Promise<boolean> => isObserved(await current(world), 3);
    assert.ok(await until(world, isSeen, 1_000));
    assert.equal((await toldOf(world)).length, 1);
  });

  it("is one wait with one beginning, when its holder becomes known and another Berth leads", async () => {
    const world = await openWorld();
    const first = world.start();
    await createVm(world.client, "web");
    await until(world, async () => isReady(await getVm(world.client, "web")));
    lock(world, backup);
    await editCores(world, 4);
    await until(world, () => isWaiting(world));
    const { since } = (await current(world)).status?.waitingFor ?? {};
    lock(world, { ...backup, task: "UPID:1", sinceMs: 0 });
    await until(world, () => false, 120_000);
    first.crash();
    world.start();
    await until(world, () => false, 120_000);
    const { waitingFor } = (await current(world)).status ?? {};
    assert.match(waitingFor?.name ?? "", /^backup, held by the task UPID:1/);
    assert.equal(waitingFor?.since, since);
    assert.equal(linesOf(world).length, 1, linesOf(world).join("\n"));
  });

  it("ends with the lock, and the next lock is told again", async () => {
    const world = await readyMachine();
    lock(world, backup);
    await editCores(world, 4);
    await until(world, () => isWaiting(world));
    lock(world, undefined);
    await until(world, async () => condition(await current(world), "Synced").startsWith("True"));
    lock(world, backup);
    await editCores(world, 2);
    await until(world, () => isWaiting(world));
    assert.equal(linesOf(world).length, 2);
  });
});

function isObserved({ status }: VirtualMachine, generation: number): boolean {
  return status?.observedGeneration === generation;
}

describe("an image on a Hypervisor that is away", () => {
  const image = ({ client }: World): Promise<VMImage> => {
    return client.of(vmImageKind).get({ namespace: "default", name: "debian" });
  };

  it("waits for it without an attempt, is told once, and goes on by itself", async () => {
    const world = await openWorld();
    const first = world.start();
    const isThere = async (): Promise<boolean> => (await image(world)).status !== undefined;
    assert.ok(await until(world, isThere));
    world.model.isAway = true;
    const isAway = async (): Promise<boolean> => (await image(world)).status?.failure !== undefined;
    assert.ok(await until(world, isAway));
    await until(world, () => false, 30 * 60_000);
    first.crash();
    world.start();
    // Whatever wakes it, nothing is tried: somebody else looks after the Hypervisor.
    for (let times = 1; times <= 5; times++) {
      const merge = { metadata: { labels: { times: String(times) } } };
      const at = { namespace: "default", name: "debian" };
      await world.client.of(vmImageKind).patch(at, { merge });
      await until(world, () => false, 60_000);
    }
    const { failure, waitingFor, conditions = [] } = (await image(world)).status ?? {};
    assert.deepEqual([failure?.category, failure?.attempts], ["NetworkError", 1]);
    assert.equal(failure?.nextRetryAt, undefined);
    assert.deepEqual([waitingFor?.kind, waitingFor?.name], ["Dependency", "Hypervisor model"]);
    assert.ok(!conditions.some(({ type }) => type === "Stalled"));
    const told = world.log.filter((line) => /^warn .*VMImage default\/debian/.test(line));
    assert.equal(told.length, 1, told.join("\n"));
    assert.match(told[0] ?? "", /"hypervisor":"model"/);
    world.model.isAway = false;
    const isBack = async (): Promise<boolean> => {
      const { status } = await image(world);
      return status?.failure === undefined && status?.waitingFor === undefined;
    };
    assert.ok(await until(world, isBack));
  });
});
