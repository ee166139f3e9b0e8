import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { hypervisorKind, virtualMachineKind } from "../api/index.ts";
import type { ClaimSpec } from "../api/index.ts";
import {
  createVm,
  getVm,
  isReady,
  listClaims,
  openWorld,
  until,
  type World,
} from "./testing/world.ts";

const at = { namespace: "default", name: "web" };

async function claims({ client }: World): Promise<ClaimSpec[]> {
  return (await listClaims(client)).map(({ spec }) => spec);
}

async function told(world: World): Promise<string[]> {
  return (await claims(world)).map(({ externalId, state, preflight = "-" }) => {
    return `${externalId} ${state} ${preflight}`;
  });
}

/** A VM that cannot be created: a volume of somebody else is under its id. */
async function openWaiting(): Promise<World> {
  const world = await openWorld();
  const volume = { id: "fast:vm-310-disk-0", owner: "310", storage: "fast", sizeBytes: 1 };
  world.model.volumes.set(volume.id, volume);
  world.start();
  await createVm(world.client, "web", { externalId: "310" });
  await until(world, async () => (await told(world)).length > 0);
  assert.deepEqual(await told(world), ["310 Reserved Pending"]);
  return world;
}

async function failure({ client }: World): Promise<string | undefined> {
  return (await getVm(client, "web"))?.status?.failure?.category;
}

describe("a Claim that is Pending", () => {
  it("exists before anything is looked at under the id, and passes when all is well", async () => {
    const world = await openWaiting();
    await until(world, async () => (await failure(world)) !== undefined);
    const [claim] = await claims(world);
    assert.deepEqual(
      claim?.otherVolumes?.map(({ id }) => id),
      ["fast:vm-310-disk-0"],
    );
    assert.equal((await getVm(world.client, "web"))?.status?.hypervisor, undefined);
    world.model.volumes.clear();
    assert.ok(await until(world, async () => isReady(await getVm(world.client, "web")), 3_600_000));
    assert.deepEqual(await told(world), ["310 Bound Passed"]);
    const [passed] = await claims(world);
    assert.deepEqual(
      passed?.otherVolumes?.map(({ id, seenAt, missingSince }) => [id, seenAt, !missingSince]),
      [["fast:vm-310-disk-0", undefined, false]],
      "the name is remembered: the volume may come back",
    );
  });

  it("is created before the first look of preflight", async () => {
    const world = await openWorld();
    const { calls } = world.start();
    await createVm(world.client, "web", { externalId: "310" });
    assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
    const isClaim = (call: string): boolean => /^POST .*\/claims$/.test(call);
    const created = calls.findLastIndex(isClaim);
    assert.ok(created >= 0 && created < calls.indexOf("preflight"), calls.join("\n"));
    assert.ok(calls.indexOf("preflight") < calls.indexOf("begin create"));
  });

  it("goes with an object that is deleted, also while the hypervisor is away", async () => {
    for (const isAway of [false, true]) {
      const world = await openWaiting();
      world.model.isAway = isAway;
      if (isAway) await until(world, async () => (await failure(world)) === "NetworkError");
      await world.client.of(virtualMachineKind).delete(at);
      assert.ok(await until(world, async () => (await getVm(world.client, "web")) === undefined));
      assert.deepEqual(await told(world), []);
      assert.deepEqual(world.model.effects, []);
    }
  });

  it("goes with an object that somebody took away without a word", async () => {
    const world = await openWaiting();
    const vms = world.client.of(virtualMachineKind);
    const annotations = { "berth.dev/paused": "true" };
    await vms.patch(at, { merge: { metadata: { annotations } } });
    await vms.delete(at);
    await vms.patch(at, { merge: { metadata: { finalizers: null } } });
    assert.ok(await until(world, async () => (await told(world)).length === 0, 15 * 60_000));
  });

  it("is given up where another id or another Hypervisor is declared now", async () => {
    const world = await openWaiting();
    await world.client.of(virtualMachineKind).patch(at, { merge: { spec: { externalId: "311" } } });
    assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
    assert.deepEqual(await told(world), ["311 Bound Passed"]);
    const moved = await openWaiting();
    const merge = { spec: { hypervisorRef: { name: "other" } } };
    await moved.client.of(virtualMachineKind).patch(at, { merge });
    assert.ok(await until(moved, async () => (await told(moved)).length === 0, 15 * 60_000));
  });

  it("does not keep its Hypervisor", async () => {
    const world = await openWaiting();
    const merge = { spec: { hypervisorRef: { name: "other" } } };
    await world.client.of(virtualMachineKind).patch(at, { merge });
    await world.client.of(hypervisorKind).delete({ name: "model" });
    const isGone = await until(world, async () => {
      const { items } = await world.client.of(hypervisorKind).list();
      return !items.some(({ metadata }) => metadata.name === "model");
    });
    assert.ok(isGone, JSON.stringify(await told(world)));
  });

  it("of an id of Berth's choice is quarantined where the id is of no use", async () => {
    const world = await openWorld();
    const volume = { id: "fast:vm-100-disk-0", owner: "100", storage: "fast", sizeBytes: 1 };
    world.model.volumes.set(volume.id, volume);
    const first = world.start();
    await createVm(world.client, "web", {});
    assert.ok(await until(world, async () => isReady(await getVm(world.client, "web"))));
    const states = (await told(world)).toSorted((a, b) => a.localeCompare(b));
    assert.deepEqual(states, ["100 Quarantined Pending", "101 Bound Passed"]);
    first.crash();
    world.start();
    await createVm(world.client, "second", {});
    assert.ok(await until(world, async () => isReady(await getVm(world.client, "second"))));
    const ids = (await claims(world)).map(({ externalId }) => externalId);
    assert.deepEqual(ids.toSorted(), ["100", "101", "102"], "nobody tries it again");
  });
});
