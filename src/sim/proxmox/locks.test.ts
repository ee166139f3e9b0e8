import assert from "node:assert/strict";
import { test } from "node:test";
import { membersOf, type Sent, Stage } from "./fixture.ts";
import { type Process, work } from "./process.ts";

const qemu = "/nodes/pve1/qemu";

/** Somebody holds a flock of pve1 for a minute and a half. */
function hold(stage: Stage, file: string): void {
  stage.model.cluster.processes.start({
    pid: 1,
    node: "pve1",
    name: "holder",
    body: holding(`pve1:${file}`),
    onEnd: () => undefined,
  });
}

function* holding(key: string): Process<void> {
  yield { kind: "lock", name: "lock", lock: { key, timeoutMs: 0, timeoutText: "" } };
  yield* work("hold", 90_000);
}

interface Case {
  readonly what: string;
  readonly method: string;
  readonly path: string;
  readonly params?: Sent;
  /** How long it waits for the flock. */
  readonly waitsMs: number;
  /** Whether the caller is told, or only the task. */
  readonly isTask: boolean;
}

const config = `${qemu}/100`;

const cases: readonly Case[] = [
  {
    what: "a create",
    method: "POST",
    path: qemu,
    params: { vmid: 100 },
    waitsMs: 5_000,
    isTask: false,
  },
  {
    what: "a change",
    method: "PUT",
    path: `${config}/config`,
    params: { name: "x" },
    waitsMs: 10_000,
    isTask: false,
  },
  {
    what: "a change in a task",
    method: "POST",
    path: `${config}/config`,
    params: { name: "x" },
    waitsMs: 10_000,
    isTask: true,
  },
  {
    what: "a start",
    method: "POST",
    path: `${config}/status/start`,
    waitsMs: 10_000,
    isTask: true,
  },
  { what: "a stop", method: "POST", path: `${config}/status/stop`, waitsMs: 10_000, isTask: true },
  { what: "a destroy", method: "DELETE", path: config, waitsMs: 10_000, isTask: true },
  {
    what: "a resize",
    method: "PUT",
    path: `${config}/resize`,
    params: { disk: "scsi0", size: "2G" },
    waitsMs: 10_000,
    isTask: true,
  },
  {
    what: "a clone",
    method: "POST",
    path: `${config}/clone`,
    params: { newid: 101, full: 1 },
    waitsMs: 1_000,
    isTask: true,
  },
  {
    what: "an import from it",
    method: "POST",
    path: qemu,
    params: { vmid: 102, scsi0: "local:0,import-from=local-zfs:vm-100-disk-0" },
    waitsMs: 30_000,
    isTask: true,
  },
];

for (const { what, method, path, params, waitsMs, isTask } of cases) {
  const where = isTask ? "its task" : "its reply";
  test(`${what} waits ${waitsMs / 1000} s for the flock, and says so in ${where}`, async () => {
    const stage = new Stage("9.2");
    assert.equal(await stage.does("POST", qemu, { vmid: 100, scsi0: "local-zfs:1" }), "OK");
    const file = "/var/lock/qemu-server/lock-100.conf";
    hold(stage, file);
    const before = stage.clock.nowMs();
    const reply = await stage.call(method, path, params);
    assert.equal(reply.status, isTask ? 200 : 500);
    const text = isTask ? await stage.taskEnd(reply.data) : reply.reason;
    assert.match(text, new RegExp(`can't lock file '${file}' - got timeout$`));
    const tookMs = stage.clock.nowMs() - before;
    assert.ok(tookMs >= waitsMs && tookMs < waitsMs + 1_000, `it took ${tookMs} ms`);
  });
}

test("a local storage is waited for ten seconds, on its node only", async () => {
  const stage = new Stage();
  hold(stage, "/var/lock/pve-manager/pve-storage-local-zfs");
  const end = await stage.does("POST", qemu, { vmid: 100, scsi0: "local-zfs:1" });
  const file = "/var/lock/pve-manager/pve-storage-local-zfs";
  assert.match(end, new RegExp(`can't lock file '${file}' - got timeout$`));
  const other = { vmid: 101, scsi0: "local-zfs:1" };
  assert.equal(await stage.does("POST", "/nodes/pve2/qemu", other), "OK");
});

test("a flock goes with its holder, a config lock does not", async () => {
  const stage = new Stage();
  await stage.does("POST", qemu, { vmid: 100, scsi0: "local:1" });
  stage.model.cluster.slowStorageMs = 60_000;
  const { data: upid } = await stage.call("POST", qemu, { vmid: 101, scsi0: "local:1" });
  stage.clock.advance(1_000);
  stage.model.killWorker(String(upid));
  stage.model.cluster.slowStorageMs = 0;
  const again = await stage.call("POST", qemu, { vmid: 101 });
  assert.equal(again.reason, "unable to create VM 101 - VM 101 already exists on node 'pve1'");
  assert.equal(await stage.does("POST", qemu, { vmid: 102, scsi0: "local:1" }), "OK");
});

test("the program of a killed worker and the next one want one name: one volume is made", async () => {
  const stage = new Stage();
  await stage.does("POST", qemu, { vmid: 100 });
  stage.model.cluster.slowStorageMs = 60_000;
  const disk = { scsi0: "local-zfs:1" };
  const { data: upid } = await stage.call("POST", `${config}/config`, disk);
  stage.clock.advance(1_000);
  stage.model.killWorker(String(upid));
  const text = "zfs error: cannot create 'rpool/data/vm-100-disk-0': dataset already exists";
  assert.equal(await stage.does("POST", `${config}/config`, disk), text);
  assert.deepEqual(await stage.volumes(100, "local-zfs"), ["local-zfs:vm-100-disk-0"]);
  stage.model.cluster.slowStorageMs = 0;
  assert.equal(await stage.does("POST", `${config}/config`, disk), "OK");
  assert.match(String((await stage.config(100))["scsi0"]), /^local-zfs:vm-100-disk-1,/);
});

test("every config lock is shown, and only root@pam's own session removes it", async () => {
  const stage = new Stage();
  await stage.does("POST", qemu, { vmid: 100 });
  for (const lock of ["backup", "clone", "create", "migrate", "rollback", "snapshot", "import"]) {
    stage.model.setLock(100, lock);
    const { data } = await stage.call("GET", "/cluster/resources", { type: "vm" });
    assert.equal(membersOf(Array.isArray(data) ? data[0] : undefined)["lock"], lock);
    assert.equal(await stage.does("DELETE", config), `VM is locked (${lock})`);
  }
  const unlock = { delete: "lock", skiplock: 1 };
  assert.equal((await stage.rootCall("PUT", `${config}/config`, unlock)).status, 200);
  assert.equal(await stage.does("DELETE", config), "OK");
});
