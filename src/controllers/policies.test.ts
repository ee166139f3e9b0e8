import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { eventResource } from "../api/builtin/index.ts";
import { hypervisorKind, virtualMachineKind } from "../api/index.ts";
import type { VirtualMachine } from "../api/index.ts";
import type { Failure, HypervisorDriver } from "../hypervisor/index.ts";
import type { ModelMachine } from "./testing/model-state.ts";
import {
  condition,
  createVm,
  getVm,
  isReady,
  openWorld,
  until,
  type World,
} from "./testing/world.ts";

const hourMs = 60 * 60_000;

async function vmOf({ client }: World): Promise<VirtualMachine> {
  const vm = await getVm(client, "web");
  assert.ok(vm);
  return vm;
}

async function ready(world: World): Promise<VirtualMachine> {
  const withinMs = 15 * 60_000;
  const isThere = await until(
    world,
    async () => isReady(await getVm(world.client, "web")),
    withinMs,
  );
  assert.ok(isThere, JSON.stringify([await vmOf(world), world.log], undefined, 1));
  return vmOf(world);
}

function onlyMachine({ model }: World): ModelMachine {
  const [machine] = model.machines.values();
  assert.ok(machine);
  return machine;
}

/** A world whose hypervisor sees no machine, for this reason, while it is told so. */
async function blindWorld(): Promise<World & { blind: { failure?: Failure } }> {
  const world = await openWorld();
  const blind: { failure?: Failure } = {};
  const connect = (): HypervisorDriver => {
    const driver = world.model.driver();
    return {
      ...driver,
      observe: async (claim, hints) => {
        const { failure } = blind;
        return failure === undefined ? driver.observe(claim, hints) : { at: "unknown", failure };
      },
    };
  };
  world.start({ connect });
  return Object.assign(world, { blind });
}

describe("failures that pass by themselves", () => {
  for (const category of ["NodeUnhealthy", "NetworkError"] as const) {
    test(`${category} is tried for ever, and success clears all of it`, async () => {
      const world = await blindWorld();
      await createVm(world.client, "web");
      await ready(world);
      world.blind.failure = { category, message: "The node n1 is down." };
      onlyMachine(world).version += 1;
      await until(world, () => false, 1.5 * hourMs);
      const { failure } = (await vmOf(world)).status ?? {};
      assert.equal(failure?.category, category);
      assert.ok(failure.attempts > 5, `${failure.attempts} attempts in an hour and a half`);
      assert.ok(failure.attempts < 20, `${failure.attempts} attempts in an hour and a half`);
      assert.ok(Date.parse(failure.nextRetryAt ?? "") > world.clock.nowMs() - 1_000);
      assert.equal(condition(await vmOf(world), "Stalled"), "");
      delete world.blind.failure;
      await ready(world);
      assert.equal((await vmOf(world)).status?.failure, undefined);
    });
  }
});

describe("waits", () => {
  test("for a lock name it, and count no attempt", async () => {
    const world = await openWorld();
    world.start();
    await createVm(world.client, "web");
    await ready(world);
    const machine = onlyMachine(world);
    const others = { task: "T1", user: "root@pam", sinceMs: 0 };
    machine.lock = { kind: "Backup", detail: "backup by a person", state: "Held", others };
    await world.client
      .of(virtualMachineKind)
      .patch({ namespace: "default", name: "web" }, { merge: { spec: { cpu: { cores: 4 } } } });
    await until(world, () => false, 900_000);
    const { waitingFor, failure } = (await vmOf(world)).status ?? {};
    const held = "backup by a person, held by the task T1 since 1970-01-01T00:00:00Z";
    assert.deepEqual([waitingFor?.kind, waitingFor?.name], ["Lock", held]);
    assert.equal(failure, undefined);
    const left = { ...others, endedMs: 1000, end: "unexpected status" };
    const remedy = "If nobody works on it any more: unlock it";
    machine.lock = { kind: "Backup", detail: "backup", state: "Unknown", others: left, remedy };
    await until(world, () => false, 900_000);
    assert.equal(
      (await vmOf(world)).status?.waitingFor?.name,
      "backup, left by the task T1, which ended at 1970-01-01T00:00:01Z (unexpected status). " +
        "If nobody works on it any more: unlock it",
    );
    delete machine.lock;
    const isOver = await until(world, async () => {
      return (await vmOf(world)).status?.waitingFor === undefined && isReady(await vmOf(world));
    });
    assert.ok(isOver);
  });

  test("for a slot name it, and count no attempt", async () => {
    const world = await openWorld();
    const merge = { spec: { slots: { hypervisor: 1 } } };
    await world.client.of(hypervisorKind).patch({ name: "model" }, { merge });
    world.model.taskMs = 10 * 60_000;
    world.start();
    await createVm(world.client, "first");
    await until(world, () => world.model.effects.length > 0);
    await createVm(world.client, "web");
    const isWaiting = await until(world, async () => {
      return (await vmOf(world)).status?.waitingFor?.kind === "Slot";
    });
    assert.ok(isWaiting, JSON.stringify((await vmOf(world)).status));
    const { waitingFor, failure } = (await vmOf(world)).status ?? {};
    assert.match(waitingFor?.name ?? "", /hypervisor model/);
    assert.equal(failure, undefined);
  });

  test("for an object that is missing name it, and count no attempt", async () => {
    const world = await openWorld();
    world.start();
    await createVm(world.client, "web", { classRef: { name: "small" } });
    await until(world, () => false, hourMs / 2);
    const { failure } = (await vmOf(world)).status ?? {};
    assert.equal(failure?.category, "DependencyNotReady");
    assert.equal(failure.attempts, 1);
    assert.match(failure.message, /no VMClass small/);
  });
});

describe("driftPolicy", () => {
  const cases = [
    { driftPolicy: "Correct", synced: "True Succeeded", bytes: 2 * 1024 ** 3, events: 0 },
    { driftPolicy: "Warn", synced: "False Drifted", bytes: 1024 ** 3, events: 1 },
    { driftPolicy: "Ignore", synced: "True Succeeded", bytes: 1024 ** 3, events: 0 },
  ] as const;
  for (const { driftPolicy, synced, bytes, events } of cases) {
    test(`${driftPolicy} is obeyed`, async () => {
      const world = await openWorld();
      world.start();
      await createVm(world.client, "web", { driftPolicy });
      await ready(world);
      const machine = onlyMachine(world);
      const effects = world.model.effects.length;
      machine.shape = { ...machine.shape, memory: { sizeBytes: 1024 ** 3 } };
      machine.version += 1;
      await until(world, () => false, 120_000);
      assert.equal(machine.shape.memory?.sizeBytes, bytes);
      assert.equal(world.model.effects.length > effects, driftPolicy === "Correct");
      assert.equal(condition(await vmOf(world), "Synced"), synced);
      assert.ok(condition(await vmOf(world), "Ready").startsWith("True"));
      const told = await world.client.of(eventResource).list({ namespace: "default" });
      assert.equal(told.items.filter((event) => event["reason"] === "Drifted").length, events);
    });
  }
});

describe("onMissing", () => {
  for (const onMissing of ["Stall", "Recreate"] as const) {
    test(`${onMissing} is obeyed`, async () => {
      const world = await openWorld();
      world.start();
      await createVm(world.client, "web", { onMissing });
      await ready(world);
      const { id, identity } = onlyMachine(world);
      world.model.machines.delete(id);
      world.model.volumes.clear();
      if (onMissing === "Stall") {
        const isStalled = await until(world, async () => {
          return condition(await vmOf(world), "Stalled") === "True Missing";
        });
        assert.ok(isStalled);
        await until(world, () => false, hourMs);
        assert.equal(world.model.machines.size, 0);
        return;
      }
      assert.ok(await until(world, () => world.model.machines.size === 1));
      await ready(world);
      assert.equal(
        onlyMachine(world).identity,
        identity,
        "the same declaration, the same identity",
      );
    });
  }
});
