import assert from "node:assert/strict";
import { test } from "node:test";
import { Stage } from "../fixture.ts";

const qemu = "/nodes/pve1/qemu";
const image = "import-from=local:import/debian-12-generic-amd64.qcow2";

async function created(stage: Stage, vmid: number, more = {}): Promise<void> {
  assert.equal(await stage.does("POST", qemu, { vmid, ...more }), "OK");
}

function migrate(stage: Stage, vmid: number, more = {}): Promise<string> {
  return stage.does("POST", `${qemu}/${vmid}/migrate`, { target: "pve2", ...more });
}

async function lastLog(stage: Stage): Promise<string> {
  const upid = stage.model.cluster.node("pve1").tasks.at(-1)?.upid ?? "";
  return JSON.stringify((await stage.call("GET", `/nodes/pve1/tasks/${upid}/log`)).data);
}

test("a migration can be killed at every step: the guest is on one node, locked, never lost", async () => {
  const places = new Set<string>();
  for (let steps = 1; steps < 30; steps++) {
    const stage = new Stage();
    await created(stage, 100, { scsi0: "local-zfs:1", scsi1: "local-zfs:1" });
    stage.model.faults.onStep({
      verdict: { kind: "kill" },
      matches: (process) => process.name === "qmigrate:100" && process.steps === steps,
    });
    const end = await migrate(stage, 100);
    if (end === "OK") break;
    const node = stage.model.cluster.nodeOfGuest(100) ?? "nowhere";
    const lock = (await stage.config(100, node))["lock"];
    places.add(`${node} ${String(lock)}`);
    const there = await stage.volumes(100, "local-zfs", node);
    assert.equal(there.length, 2, "the disks are whole where the config is");
  }
  // The first and the last step are before the lock is set, and after it is gone.
  assert.deepEqual([...places].sort(), [
    "pve1 migrate",
    "pve1 undefined",
    "pve2 migrate",
    "pve2 undefined",
  ]);
});

test("a guest that moves is found by whoever looks again, not at its old address", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "shared:1" });
  assert.equal(await migrate(stage, 100), "OK");
  const old = await stage.call("GET", `${qemu}/100/config`);
  const text = "Configuration file 'nodes/pve1/qemu-server/100.conf' does not exist";
  assert.deepEqual([old.status, old.reason], [500, text]);
  assert.equal((await stage.call("GET", "/cluster/nextid", { vmid: 100 })).status, 400);
  assert.equal((await stage.config(100, "pve2"))["lock"], undefined);
});

test("a running guest needs to be asked for so, and its local disks too", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: `local-zfs:0,${image}` });
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  assert.equal(await migrate(stage, 100), "500 can't migrate running VM without --online");
  assert.equal(await migrate(stage, 100, { online: 1 }), "migration aborted");
  assert.match(await lastLog(stage), /can't live migrate attached local disks without/);
  assert.equal((await stage.config(100))["lock"], undefined);
  assert.equal(await migrate(stage, 100, { online: 1, "with-local-disks": 1 }), "OK");
  assert.equal(stage.model.cluster.isRunning("pve2", 100), true);
  assert.equal(stage.model.cluster.isRunning("pve1", 100), false);
});

test("a name that is taken on the target gets another, and the config follows", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local-zfs:1" });
  const there = stage.model.cluster.state.volumes;
  const leftover = { content: "images", format: "raw", sizeBytes: 1, usedBytes: 0 } as const;
  there["pve2:rpool/data"] = [{ name: "vm-100-disk-0", vmid: 100, createdMs: 0, ...leftover }];
  assert.equal(await migrate(stage, 100), "OK");
  assert.equal((await stage.config(100, "pve2"))["scsi0"], "local-zfs:vm-100-disk-1,size=1G");
});

test("disks can go to another storage on the way", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local-zfs:1" });
  assert.equal(await migrate(stage, 100, { targetstorage: "local" }), "OK");
  const config = await stage.config(100, "pve2");
  assert.equal(config["scsi0"], "local:100/vm-100-disk-0.raw,size=1G");
});

test("what cannot go is named in the log: a local medium, a linked clone, another's disk", async () => {
  const stage = new Stage();
  const volumes = stage.model.cluster.state.volumes["pve1:/var/lib/vz"] ?? [];
  const iso = { name: "iso/a.iso", content: "iso", format: "iso" } as const;
  volumes.push({ ...iso, sizeBytes: 1024, usedBytes: 1024, createdMs: 0 });
  await created(stage, 100, { ide2: "local:iso/a.iso,media=cdrom" });
  await created(stage, 101, { scsi0: "local-zfs:1" });
  await created(stage, 103, { scsi0: "local-zfs:vm-101-disk-0" });
  assert.equal(await migrate(stage, 100), "migration aborted");
  assert.match(
    await lastLog(stage),
    /can't migrate local disk 'local:iso\/a\.iso': local cdrom image/,
  );
  assert.equal(await migrate(stage, 103), "migration aborted");
  assert.match(await lastLog(stage), /owned by other VM \(owner = VM 101\)/);
  assert.equal(await stage.does("POST", `${qemu}/101/template`), "OK");
  assert.equal(await stage.does("POST", `${qemu}/101/clone`, { newid: 102 }), "OK");
  assert.equal(await migrate(stage, 102), "migration aborted");
  assert.match(await lastLog(stage), /as it's a clone of 'base-101-disk-0'/);
  assert.equal(await migrate(stage, 101), "migration aborted");
  assert.match(await lastLog(stage), /referenced by linked clone\(s\)/);
});

test("a target that goes down in the middle aborts it, and nothing is lost here", async () => {
  const stage = new Stage();
  stage.model.cluster.timing = { ...stage.model.cluster.timing, copyPerGibMs: 10_000 };
  await created(stage, 100, { scsi0: `local-zfs:0,${image}` });
  const { data: upid } = await stage.call("POST", `${qemu}/100/migrate`, { target: "pve2" });
  stage.clock.advance(2_000);
  stage.model.crashNode("pve2");
  assert.equal(await stage.taskEnd(upid), "migration aborted");
  assert.equal((await stage.config(100))["lock"], undefined);
  assert.equal((await stage.volumes(100, "local-zfs")).length, 1);
});

test("an old copy that cannot be removed is a problem, and the guest has moved", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local-zfs:1" });
  stage.model.faults.onStep({
    verdict: { kind: "fail", error: new Error("dataset is busy") },
    matches: (_, step) => step.name.startsWith("remove local-zfs:"),
  });
  assert.equal(await migrate(stage, 100), "migration problems");
  assert.equal(stage.model.cluster.nodeOfGuest(100), "pve2");
  assert.equal((await stage.volumes(100, "local-zfs", "pve1")).length, 1);
});
