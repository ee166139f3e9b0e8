import assert from "node:assert/strict";
import { test } from "node:test";
import { membersOf, Stage } from "../fixture.ts";

const qemu = "/nodes/pve1/qemu";

async function created(stage: Stage, more = {}): Promise<void> {
  const disks = { scsi0: "local:1,format=qcow2", scsi1: "local-zfs:1" };
  assert.equal(await stage.does("POST", qemu, { vmid: 100, ...disks, ...more }), "OK");
}

async function snapshots(stage: Stage): Promise<Record<string, unknown>[]> {
  const { data } = await stage.call("GET", `${qemu}/100/snapshot`);
  return Array.isArray(data) ? data.map(membersOf) : [];
}

test("a snapshot can be killed at every step: its lock stays, and what is not whole says so", async () => {
  const states = new Set<string>();
  for (let steps = 1; steps < 20; steps++) {
    const stage = new Stage();
    await created(stage);
    stage.model.faults.onStep({
      verdict: { kind: "kill" },
      matches: (process) => process.name === "qmsnapshot:100" && process.steps === steps,
    });
    const end = await stage.does("POST", `${qemu}/100/snapshot`, { snapname: "s1" });
    if (end === "OK") break;
    const lock = (await stage.config(100))["lock"];
    const { data } = await stage.call("GET", `${qemu}/100/snapshot/s1/config`);
    states.add(`${String(lock)} ${String(membersOf(data)["snapstate"])}`);
    if (lock !== "snapshot") continue;
    const removed = await stage.does("DELETE", `${qemu}/100/snapshot/s1`);
    assert.equal(removed, "VM is locked (snapshot)");
  }
  assert.ok(states.has("snapshot prepare"), [...states].join());
});

test("while a snapshot is made others are refused for its lock, not for a flock", async () => {
  const stage = new Stage();
  await created(stage);
  stage.model.cluster.timing = { ...stage.model.cluster.timing, stepMs: 20_000 };
  const { data: upid } = await stage.call("POST", `${qemu}/100/snapshot`, { snapname: "s1" });
  stage.clock.advance(60_000);
  const reply = await stage.call("PUT", `${qemu}/100/config`, { name: "x" });
  assert.equal(reply.reason, "VM is locked (snapshot)");
  assert.equal(await stage.taskEnd(upid), "OK");
});

test("memory is saved with a snapshot in a volume of its own, and goes with it", async () => {
  const stage = new Stage();
  await created(stage, { memory: 512 });
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  const taken = await stage.does("POST", `${qemu}/100/snapshot`, { snapname: "s1", vmstate: 1 });
  assert.equal(taken, "OK");
  const [first] = await snapshots(stage);
  assert.deepEqual([first?.["name"], first?.["vmstate"]], ["s1", 1]);
  assert.ok((await stage.volumes(100)).includes("local:100/vm-100-state-s1.raw"));
  assert.equal(await stage.does("POST", `${qemu}/100/status/stop`), "OK");
  assert.equal(await stage.does("POST", `${qemu}/100/snapshot/s1/rollback`), "OK");
  assert.equal(stage.model.cluster.isRunning("pve1", 100), true);
  assert.equal(await stage.does("DELETE", `${qemu}/100/snapshot/s1`), "OK");
  assert.ok(!(await stage.volumes(100)).some((volid) => volid.includes("state")));
});

test("a rollback takes back what was set since; disks that came later are unused", async () => {
  const stage = new Stage();
  await created(stage, { name: "before", memory: 512 });
  assert.equal(await stage.does("POST", `${qemu}/100/snapshot`, { snapname: "s1" }), "OK");
  const later = { name: "after", memory: 1024, scsi2: "local-zfs:1", description: "kept" };
  await stage.call("PUT", `${qemu}/100/config`, later);
  await stage.does("PUT", `${qemu}/100/resize`, { disk: "scsi1", size: "5G" });
  assert.equal(await stage.does("POST", `${qemu}/100/snapshot/s1/rollback`), "OK");
  const config = await stage.config(100);
  assert.deepEqual([config["name"], config["memory"]], ["before", "512"]);
  assert.equal(config["unused0"], "local-zfs:vm-100-disk-1");
  assert.equal(config["description"], "kept");
  const volume = stage.model.volume("pve1", "local-zfs:vm-100-disk-0");
  assert.equal(volume?.sizeBytes, 1024 ** 3);
});

test("zfs goes back to its newest snapshot only", async () => {
  const stage = new Stage();
  await created(stage);
  for (const snapname of ["s1", "s2"]) {
    assert.equal(await stage.does("POST", `${qemu}/100/snapshot`, { snapname }), "OK");
  }
  const end = await stage.does("POST", `${qemu}/100/snapshot/s1/rollback`);
  const what = "'s1' is not most recent snapshot on 'local-zfs:vm-100-disk-0'";
  assert.equal(end, `can't rollback, ${what}`);
  assert.equal((await stage.config(100))["lock"], undefined);
});

test("a killed rollback leaves its lock and a machine that is off", async () => {
  const stage = new Stage();
  await created(stage);
  assert.equal(await stage.does("POST", `${qemu}/100/snapshot`, { snapname: "s1" }), "OK");
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  stage.model.faults.onStep({
    verdict: { kind: "kill" },
    matches: (_, step) => step.name.startsWith("roll scsi"),
  });
  const end = await stage.does("POST", `${qemu}/100/snapshot/s1/rollback`);
  assert.equal(end, "unexpected status");
  assert.equal((await stage.config(100))["lock"], "rollback");
  assert.equal(stage.model.cluster.isRunning("pve1", 100), false);
});

test("a disk that a snapshot still names is not freed, and lives on when it is taken away", async () => {
  const stage = new Stage();
  await created(stage);
  assert.equal(await stage.does("POST", `${qemu}/100/snapshot`, { snapname: "s1" }), "OK");
  await stage.call("PUT", `${qemu}/100/config`, { delete: "scsi1" });
  const freed = await stage.call("PUT", `${qemu}/100/config`, { delete: "unused0" });
  const text = "unable to delete 'local-zfs:vm-100-disk-0' - volume is still in use (snapshot?)";
  assert.equal(freed.reason, text);
  assert.equal(await stage.does("DELETE", `${qemu}/100/snapshot/s1`), "OK");
  assert.equal((await stage.call("PUT", `${qemu}/100/config`, { delete: "unused0" })).status, 200);
});

test("raw files cannot be snapshotted, and the feature says so beforehand", async () => {
  const stage = new Stage();
  await created(stage, { scsi2: "local:1" });
  const end = await stage.does("POST", `${qemu}/100/snapshot`, { snapname: "s1" });
  assert.equal(end, "snapshot feature is not available");
  const ask = async (feature: string): Promise<unknown> => {
    const { data } = await stage.call("GET", `${qemu}/100/feature`, { feature });
    return membersOf(data)["hasFeature"];
  };
  assert.deepEqual([await ask("snapshot"), await ask("copy"), await ask("clone")], [0, 1, 0]);
  await stage.call("PUT", `${qemu}/100/config`, { delete: "scsi1" });
  assert.equal(await ask("clone"), 0, "files are cloned from a base only, too");
});
