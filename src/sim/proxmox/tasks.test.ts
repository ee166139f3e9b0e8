import assert from "node:assert/strict";
import { test } from "node:test";
import { membersOf, type Sent, Stage } from "./fixture.ts";
import { type Process, work } from "./process.ts";
import { forkTask } from "./tasks.ts";

const qemu = "/nodes/pve1/qemu";

async function listed(stage: Stage, params: Sent = {}): Promise<Record<string, unknown>[]> {
  const { data } = await stage.call("GET", "/nodes/pve1/tasks", params);
  return Array.isArray(data) ? data.map(membersOf) : [];
}

test("a UPID tells node, process, start, type, id and the whole name of the token", async () => {
  const stage = new Stage();
  const { data } = await stage.call("POST", qemu, { vmid: 100 });
  const form = /^UPID:pve1:[0-9A-F]{8}:[0-9A-F]{8,9}:[0-9A-F]{8}:qmcreate:100:berth@pve!berth:$/;
  assert.match(String(data), form);
});

test("a clone is logged under its source: its new id finds nothing", async () => {
  const stage = new Stage();
  await stage.does("POST", qemu, { vmid: 100, scsi0: "local:1" });
  await stage.does("POST", `${qemu}/100/clone`, { newid: 101, full: 1 });
  assert.deepEqual(await listed(stage, { vmid: 101 }), []);
  assert.equal((await listed(stage, { vmid: 100, typefilter: "qmclone" })).length, 1);
});

test("a running task is in the active list only, and in neither by default", async () => {
  const stage = new Stage();
  stage.model.cluster.slowStorageMs = 5_000;
  const { data: upid } = await stage.call("POST", qemu, { vmid: 100, scsi0: "local:1" });
  assert.deepEqual(await listed(stage), []);
  const [active] = await listed(stage, { source: "active" });
  assert.deepEqual([active?.["upid"], active?.["status"]], [upid, "RUNNING"]);
  assert.equal(active?.["endtime"], undefined);
  assert.equal(await stage.taskEnd(upid), "OK");
  assert.deepEqual(await listed(stage, { source: "active" }), []);
  const [finished] = await listed(stage);
  assert.deepEqual([finished?.["status"], finished?.["tokenid"]], ["OK", "berth"]);
});

test("a worker that is killed has no last line: its status is unexpected, its flock is free", async () => {
  const stage = new Stage();
  await stage.does("POST", qemu, { vmid: 100 });
  stage.model.cluster.slowStorageMs = 60_000;
  const { data: upid } = await stage.call("POST", `${qemu}/100/config`, { scsi0: "local:1" });
  stage.clock.advance(1_000);
  assert.equal(stage.model.killWorker(String(upid)), true);
  assert.equal(await stage.taskEnd(upid), "unexpected status");
  const { data } = await stage.call("GET", `/nodes/pve1/tasks/${String(upid)}/log`);
  assert.doesNotMatch(JSON.stringify(data), /TASK/);
  assert.equal((await stage.call("PUT", `${qemu}/100/config`, { name: "x" })).status, 200);
});

test("a stopped task cleans up if it can within five seconds, and is killed if not", async () => {
  const stage = new Stage();
  const create = { vmid: 100, scsi0: "local:1", scsi1: "local:1" };
  stage.model.cluster.slowStorageMs = 2_000;
  const { data: upid } = await stage.call("POST", qemu, create);
  stage.clock.advance(3_000);
  await stage.call("DELETE", `/nodes/pve1/tasks/${String(upid)}`);
  assert.match(await stage.taskEnd(upid), /received interrupt$/);
  assert.deepEqual(await stage.volumes(100), []);
  assert.equal((await stage.call("GET", `${qemu}/100/config`)).status, 500);
});

test("a clean-up that needs longer than that is cut off: a husk and its volumes stay", async () => {
  const stage = new Stage();
  stage.model.cluster.slowStorageMs = 2_000;
  const disks = { scsi0: "local-zfs:1", scsi1: "local-zfs:1" };
  const { data: upid } = await stage.call("POST", qemu, { vmid: 100, ...disks });
  stage.clock.advance(2_500);
  stage.model.cluster.processes.start({
    pid: 1,
    node: "pve1",
    name: "somebody else",
    body: holdStorage(),
    onEnd: () => undefined,
  });
  await stage.call("DELETE", `/nodes/pve1/tasks/${String(upid)}`);
  assert.equal(await stage.taskEnd(upid), "unexpected status");
  assert.equal((await stage.config(100))["lock"], "create");
  assert.equal((await stage.volumes(100, "local-zfs")).length, 1);
});

function* holdStorage(): Process<void> {
  const key = "pve1:/var/lock/pve-manager/pve-storage-local-zfs";
  yield { kind: "lock", name: "lock", lock: { key, timeoutMs: 60_000, timeoutText: "" } };
  yield* work("scrub", 60_000);
}

test("a busy node forgets: first the lists, then, once a day, the logs", async () => {
  const stage = new Stage();
  const { data: first } = await stage.call("POST", qemu, { vmid: 100 });
  await stage.taskEnd(first);
  const status = (): Promise<{ status: number }> =>
    stage.call("GET", `/nodes/pve1/tasks/${String(first)}/status`);
  const task = { node: "pve1", type: "qmconfig", id: "100", user: "berth@pve!berth" };
  for (let count = 0; count < 1_400; count++) {
    forkTask(stage.model.cluster, task, () => work("nothing"));
    stage.clock.advance(100);
  }
  const all = await listed(stage, { limit: 5_000 });
  assert.ok(all.length > 600 && all.length < 1_400, `${all.length} are listed`);
  assert.deepEqual(await listed(stage, { typefilter: "qmcreate" }), []);
  assert.equal((await status()).status, 200, "its log is still there");
  stage.clock.advance(25 * 60 * 60 * 1000);
  assert.equal(await stage.does("POST", `${qemu}/100/config`, { name: "last" }), "OK");
  assert.equal((await status()).status, 400);
});

test("a token without the right to audit sees its own tasks on a node, and none in the cluster", async () => {
  const stage = new Stage();
  const { users, acl } = stage.model.cluster.state;
  const token = { tokenid: "t", secret: "s", privsep: 0, expire: 0 };
  users.push({ userid: "lim@pve", isEnabled: true, tokens: [token] });
  const grant = { type: "user", ugid: "lim@pve", propagate: 1 } as const;
  acl.push({ ...grant, path: "/vms", roleid: "PVEVMAdmin" });
  const as = "lim@pve!t=s";
  await stage.does("POST", qemu, { vmid: 100 });
  const own = await stage.call("POST", qemu, { vmid: 101, as });
  assert.match(String(own.data), /^UPID:/);
  stage.clock.advance(5_000);
  const ids = (await listed(stage, { as })).map((row) => row["id"]);
  assert.deepEqual(ids, ["101"]);
  assert.deepEqual((await stage.call("GET", "/cluster/tasks", { as })).data, []);
  const other = (await listed(stage)).find((row) => row["id"] === "100")?.["upid"];
  const foreign = await stage.call("GET", `/nodes/pve1/tasks/${String(other)}/status`, { as });
  assert.equal(foreign.status, 403);
});

/** The time that a node tells, in seconds. */
async function timeOf(stage: Stage, node: string): Promise<number> {
  return Number(membersOf((await stage.call("GET", `/nodes/${node}/time`)).data)["time"]);
}

test("a node dates its tasks by its own clock, which need not be right", async () => {
  const stage = new Stage();
  stage.model.cluster.setClocks(-120_000, ["pve1"]);
  const here = await timeOf(stage, "pve1");
  assert.ok(Math.abs((await timeOf(stage, "pve2")) - here - 120) <= 1);
  await stage.does("POST", qemu, { vmid: 100, scsi0: "local:1" });
  const [task] = await listed(stage);
  const started = Number.parseInt(String(task?.["upid"]).split(":")[4] ?? "", 16);
  assert.equal(task?.["starttime"], started);
  for (const seconds of [started, Number(task?.["endtime"])]) {
    assert.ok(seconds >= here && seconds <= here + 60, `${seconds - here} s after`);
  }
  assert.equal((await listed(stage, { since: started })).length, 1);
  assert.equal((await listed(stage, { since: started + 60 })).length, 0);
});

test("a node dates its files and its replies by its own clock", async () => {
  const stage = new Stage();
  const { model, clock } = stage;
  model.cluster.setClocks(-120_000, ["pve1"]);
  await stage.does("POST", qemu, { vmid: 100, scsi0: "local:1" });
  const here = await timeOf(stage, "pve1");
  const { data } = await stage.call("GET", "/nodes/pve1/storage/local/content", { vmid: 100 });
  const row = (Array.isArray(data) ? data.map(membersOf) : []).find(({ vmid }) => vmid === 100);
  assert.ok(Math.abs(Number(row?.["ctime"]) - here) <= 60);
  const path = "/api2/json/access/domains";
  const { headers } = await model.send({ method: "GET", path, headers: {} });
  const date = Date.parse(headers["date"] ?? "");
  assert.ok(Math.abs(date + 120_000 - clock.nowMs()) <= 1_000);
});
