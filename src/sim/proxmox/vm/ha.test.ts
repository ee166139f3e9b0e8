import assert from "node:assert/strict";
import { test } from "node:test";
import { membersOf, Stage } from "../fixture.ts";

const qemu = "/nodes/pve1/qemu";
const resources = "/cluster/ha/resources";
const image = "shared:0,import-from=local:import/debian-12-generic-amd64.qcow2";

/** A guest under HA that is asked to be off, and is. */
async function managed(stage: Stage, more = {}): Promise<void> {
  assert.equal(await stage.does("POST", qemu, { vmid: 100, scsi0: image, ...more }), "OK");
  const reply = await stage.call("POST", resources, { sid: "vm:100", state: "stopped" });
  assert.equal(reply.status, 200, reply.reason);
}

async function rowOf(stage: Stage): Promise<Record<string, unknown>> {
  const { data } = await stage.call("GET", "/cluster/resources", { type: "vm" });
  return membersOf(Array.isArray(data) ? data[0] : undefined);
}

function isRunning(stage: Stage): boolean {
  return stage.model.cluster.machine(100) !== undefined;
}

test("a start of a managed guest ends when it is queued; the manager does it later", async () => {
  const stage = new Stage();
  await managed(stage);
  const { data: upid } = await stage.call("POST", `${qemu}/100/status/start`);
  assert.match(String(upid), /:hastart:100:/);
  assert.equal(await stage.taskEnd(upid), "OK");
  assert.equal(isRunning(stage), false);
  stage.clock.advance(15_000);
  assert.equal(isRunning(stage), true);
  assert.equal((await rowOf(stage))["hastate"], "started");
});

test("a stop and a shutdown are queued under one name, and seen on their way", async () => {
  const stage = new Stage();
  await managed(stage);
  for (const verb of ["stop", "shutdown"]) {
    await stage.does("POST", `${qemu}/100/status/start`);
    stage.clock.advance(15_000);
    assert.equal(isRunning(stage), true);
    const { data: upid } = await stage.call("POST", `${qemu}/100/status/${verb}`);
    assert.match(String(upid), /:hastop:100:/);
    assert.equal(await stage.taskEnd(upid), "OK");
    assert.equal(isRunning(stage), true, `${verb} only queues`);
    assert.equal((await rowOf(stage))["hastate"], "request_stop");
    stage.clock.advance(30_000);
    assert.equal(isRunning(stage), false);
  }
});

test("a managed guest that dies is started again, whoever stopped it", async () => {
  const stage = new Stage();
  await managed(stage);
  await stage.does("POST", `${qemu}/100/status/start`);
  stage.clock.advance(15_000);
  stage.model.killMachine(100);
  assert.equal(isRunning(stage), false);
  stage.clock.advance(15_000);
  assert.equal(isRunning(stage), true);
});

test("a guest that cannot be started is given up after its restarts", async () => {
  const stage = new Stage();
  await managed(stage, { net0: "virtio,bridge=vmbr9" });
  await stage.does("POST", `${qemu}/100/status/start`);
  stage.clock.advance(120_000);
  assert.equal((await rowOf(stage))["hastate"], "error");
  const starts = stage.model.cluster.node("pve1").tasks.filter(({ type }) => type === "qmstart");
  assert.equal(starts.length, 2);
  const moved = await stage.call("POST", `${resources}/vm:100/migrate`, { node: "pve2" });
  assert.match(moved.reason, /in error state, must be disabled and fixed first$/);
});

test("a node that is gone is fenced after a minute, and its guests go on elsewhere", async () => {
  const stage = new Stage();
  await managed(stage);
  await stage.does("POST", `${qemu}/100/status/start`);
  stage.clock.advance(15_000);
  stage.model.crashNode("pve1");
  stage.clock.advance(30_000);
  assert.equal(stage.model.cluster.nodeOfGuest(100), "pve1");
  stage.clock.advance(90_000);
  assert.equal(stage.model.cluster.nodeOfGuest(100), "pve2");
  assert.equal(isRunning(stage), true);
});

test("a lock goes with a guest that is taken over, and keeps it from being started", async () => {
  const stage = new Stage();
  await managed(stage);
  await stage.does("POST", `${qemu}/100/status/start`);
  stage.clock.advance(15_000);
  stage.model.setLock(100, "snapshot");
  stage.model.crashNode("pve1");
  stage.clock.advance(180_000);
  assert.equal(stage.model.cluster.nodeOfGuest(100), "pve2");
  assert.equal(isRunning(stage), false);
});

test("a migration of a managed guest is queued, and done by the manager", async () => {
  const stage = new Stage();
  await managed(stage);
  const { data: upid } = await stage.call("POST", `${qemu}/100/migrate`, { target: "pve3" });
  assert.match(String(upid), /:hamigrate:100:/);
  assert.equal(await stage.taskEnd(upid), "OK");
  assert.equal(stage.model.cluster.nodeOfGuest(100), "pve1");
  assert.equal((await rowOf(stage))["hastate"], "migrate");
  stage.clock.advance(30_000);
  assert.equal(stage.model.cluster.nodeOfGuest(100), "pve3");
});

test("a managed guest is not suspended to disk, and not destroyed without purge", async () => {
  const stage = new Stage();
  await managed(stage);
  const refused = await stage.does("DELETE", `${qemu}/100`);
  const why = "used in HA resources and purge parameter not set.";
  assert.equal(refused, `500 unable to remove VM 100 - ${why}`);
  await stage.does("POST", `${qemu}/100/status/start`);
  stage.clock.advance(15_000);
  const suspended = await stage.does("POST", `${qemu}/100/status/suspend`, { todisk: 1 });
  assert.equal(suspended, "500 Cannot suspend HA managed VM to disk");
  await stage.does("POST", `${qemu}/100/status/stop`);
  stage.clock.advance(30_000);
  assert.equal(await stage.does("DELETE", `${qemu}/100`, { purge: 1 }), "OK");
  assert.deepEqual((await stage.call("GET", resources)).data, []);
});

test("groups are for releases before 9, and rules for those after", async () => {
  const [old, now] = [new Stage("8.4"), new Stage("9.2")];
  const group = { group: "left", nodes: "pve1,pve2" };
  assert.equal((await old.call("POST", "/cluster/ha/groups", group)).status, 200);
  assert.equal((await old.call("GET", "/cluster/ha/rules")).status, 501);
  const refused = await now.call("POST", "/cluster/ha/groups", group);
  assert.equal(refused.reason, "cannot create group: ha groups have been migrated to rules");
  await managed(now);
  const rule = { rule: "near", type: "node-affinity", resources: "vm:100", nodes: "pve1" };
  assert.equal((await now.call("POST", "/cluster/ha/rules", rule)).status, 200);
  const stranger = await now.call("POST", "/cluster/ha/rules", {
    ...rule,
    rule: "far",
    resources: "vm:7",
  });
  assert.equal(stranger.reason, "cannot use unmanaged resource(s) vm:7.");
});

test("a guest that is made under HA is off, or on later, as the create asked", async () => {
  const stage = new Stage();
  for (const [vmid, start] of [
    [100, 0],
    [101, 1],
  ] as const) {
    const create = { vmid, scsi0: image, "ha-managed": 1, start };
    assert.equal(await stage.does("POST", qemu, create), "OK");
  }
  stage.clock.advance(30_000);
  assert.equal(stage.model.cluster.isRunning("pve1", 100), false);
  assert.equal(stage.model.cluster.isRunning("pve1", 101), true);
  const types = stage.model.cluster.node("pve1").tasks.map(({ type, id }) => `${type}:${id}`);
  assert.ok(types.includes("hastart:101") && !types.includes("hastart:100"), types.join());
});
