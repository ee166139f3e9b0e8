import assert from "node:assert/strict";
import { test } from "node:test";
import { eventResource } from "../api/builtin/index.ts";
import { virtualMachineKind } from "../api/index.ts";
import {
  condition,
  createVm,
  getVm,
  isReady,
  listClaims,
  openWorld,
  until,
} from "./testing/world.ts";

const web = { namespace: "default", name: "web" };

test("a declared machine comes to stand with its disks and runs, within 12 status writes", async () => {
  const world = await openWorld();
  const { client, model } = world;
  world.start();
  await createVm(client, "web");
  const isThere = await until(world, async () => isReady(await getVm(client, "web")));
  const vm = await getVm(client, "web");
  assert.ok(isThere, JSON.stringify([vm?.status, world.log, model.effects], undefined, 1));
  assert.deepEqual(model.effects, [
    "create 100",
    "addDisk 100",
    "addDisk 100",
    "grow 100",
    "powerOn 100",
  ]);
  assert.equal(vm?.status?.powerState, "Running");
  assert.equal(condition(vm, "Synced"), "True Succeeded");
  assert.equal(vm?.status?.operation, undefined);
  const writes = world.statusWrites.filter((path) => path.includes("virtualmachines"));
  assert.ok(writes.length <= 12, `${writes.length} status writes`);
  const [claim] = await listClaims(client);
  assert.equal(claim?.spec.state, "Bound");
  assert.equal(claim?.spec.everExisted, true);
  assert.equal(claim?.spec.volumes?.length, 2);
  await until(world, () => false, 60_000);
  const events = await client.of(eventResource).list({ namespace: "default" });
  assert.ok(events.items.length > 0);
  const warnings = events.items.filter((event) => event["type"] !== "Normal");
  assert.deepEqual(
    warnings.map((event) => event["message"]),
    [],
    "nothing was wrong",
  );
});

test("a deleted machine is switched off and destroyed, and its id rests", async () => {
  const world = await openWorld();
  const { client, model } = world;
  world.start();
  await createVm(client, "web");
  await until(world, async () => isReady(await getVm(client, "web")));
  await client.of(virtualMachineKind).delete(web);
  assert.ok(await until(world, async () => (await getVm(client, "web")) === undefined));
  assert.deepEqual(model.effects.slice(-2), ["powerOff 100", "destroy 100"]);
  assert.equal(model.machines.size, 0);
  assert.equal(model.volumes.size, 0);
  const [claim] = await listClaims(client);
  assert.equal(claim?.spec.state, "Quarantined");
});
