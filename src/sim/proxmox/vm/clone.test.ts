import assert from "node:assert/strict";
import { test } from "node:test";
import { Stage } from "../fixture.ts";

const qemu = "/nodes/pve1/qemu";

async function created(stage: Stage, vmid: number, more = {}): Promise<void> {
  assert.equal(await stage.does("POST", qemu, { vmid, ...more }), "OK");
}

test("between the reply to a clone and its worker the new id is still free", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local:1" });
  const { data: upid } = await stage.call("POST", `${qemu}/100/clone`, { newid: 101, full: 1 });
  assert.equal(stage.model.cluster.nodeOfGuest(101), undefined);
  stage.model.writeGuestFile("pve2", 101, "name: theirs\n");
  const end = await stage.taskEnd(upid);
  assert.equal(
    end,
    "close (rename) atomic file '/etc/pve/nodes/pve1/qemu-server/101.conf' failed: File exists",
  );
  assert.equal(stage.model.cluster.guestText("pve2", 101), "name: theirs\n");
});

test("a clone can be killed at every step: nothing, a husk, or marks under a lock", async () => {
  const seen = new Set<string>();
  for (let steps = 1; steps < 60; steps++) {
    const stage = new Stage();
    await created(stage, 100, { name: "src", scsi0: "local:1", scsi1: "local:1" });
    stage.model.faults.onStep({
      verdict: { kind: "kill" },
      matches: (process) => process.name === "qmclone:100" && process.steps === steps,
    });
    const clone = { newid: 101, full: 1, name: "mark" };
    const end = await stage.does("POST", `${qemu}/100/clone`, clone);
    if (end === "OK") break;
    const config = await stage.config(101);
    const what = `lock ${String(config["lock"])}, name ${String(config["name"])}`;
    seen.add(config["digest"] === undefined ? "nothing" : what);
  }
  assert.deepEqual([...seen].sort(), [
    "lock clone, name mark",
    "lock clone, name undefined",
    "lock undefined, name mark",
    "nothing",
  ]);
});

test("a clone that fails after its config was handed over leaves that, and no disks", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "shared:1" });
  stage.model.faults.onStep({
    verdict: { kind: "fail", error: new Error("no such pool") },
    matches: ({ name }, step) => name === "qmclone:100" && step.name === "add to pool",
  });
  const clone = { newid: 101, full: 1, target: "pve2" };
  assert.equal(await stage.does("POST", `${qemu}/100/clone`, clone), "clone failed: no such pool");
  assert.match(String((await stage.config(101, "pve2"))["scsi0"]), /^shared:101\//);
  assert.deepEqual(await stage.volumes(101, "shared"), []);
});

test("a clone on another node needs all its disks to be shared", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local:1" });
  await created(stage, 101, { scsi0: "shared:1" });
  const clone = (vmid: number, more: Record<string, string> = {}): Promise<string> =>
    stage.does("POST", `${qemu}/${vmid}/clone`, { newid: 200, full: 1, target: "pve2", ...more });
  assert.equal(await clone(100), "500 can't clone VM to node 'pve2' (VM uses local storage)");
  const local = await clone(101, { storage: "local" });
  assert.equal(local, "500 can't clone to non-shared storage 'local'");
  assert.equal(await clone(101), "OK");
  assert.equal(stage.model.cluster.nodeOfGuest(200), "pve2");
});

test("a linked clone needs a base; the refusal names the drive as its release does", async () => {
  const texts = {
    "9.2": "500 Linked clone feature is not supported for 'local-zfs:vm-100-disk-0' (scsi0)",
    "7.4": "500 Linked clone feature is not supported for drive 'scsi0'",
  };
  for (const release of ["9.2", "7.4"] as const) {
    const stage = new Stage(release);
    await created(stage, 100, { scsi0: "local-zfs:1" });
    const end = await stage.does("POST", `${qemu}/100/clone`, { newid: 101, full: 0 });
    assert.equal(end, texts[release]);
  }
});

test("clones of a stopped guest share its lock; a running one is cloned alone, within a second", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local:1" });
  const clone = async (newid: number): Promise<unknown> =>
    (await stage.call("POST", `${qemu}/100/clone`, { newid, full: 1 })).data;
  const pair = [await clone(101), await clone(102)];
  for (const upid of pair) assert.equal(await stage.taskEnd(upid), "OK");
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  stage.model.cluster.slowStorageMs = 5_000;
  const [first, second] = [await clone(103), await clone(104)];
  const text = "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout";
  assert.equal(await stage.taskEnd(second), text);
  assert.equal(await stage.taskEnd(first), "OK");
});

test("a clone inherits tags, description and cloud-init, not its identity or unused disks", async () => {
  const stage = new Stage();
  const marks = { description: "mark", tags: "a;b", ciuser: "me" };
  await created(stage, 100, { scsi0: "local:1", scsi1: "local:1", ...marks });
  await stage.call("PUT", `${qemu}/100/config`, { delete: "scsi1" });
  assert.equal(await stage.does("POST", `${qemu}/100/clone`, { newid: 101, full: 1 }), "OK");
  const [source, copy] = [await stage.config(100), await stage.config(101)];
  for (const key of ["description", "tags", "ciuser", "meta"]) {
    assert.equal(copy[key], source[key], key);
  }
  assert.equal(copy["name"], "Copy-of-VM-100");
  assert.equal(copy["unused0"], undefined);
  assert.notEqual(copy["smbios1"], source["smbios1"]);
});

test("a template that is killed half way is one, with some of its disks", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local-zfs:1", scsi1: "local-zfs:1" });
  stage.model.faults.onStep({
    verdict: { kind: "kill" },
    matches: (_, step) => step.name === "convert scsi1",
  });
  assert.equal(await stage.does("POST", `${qemu}/100/template`), "unexpected status");
  const config = await stage.config(100);
  assert.equal(config["template"], 1);
  assert.match(String(config["scsi0"]), /base-100-disk-0/);
  assert.match(String(config["scsi1"]), /vm-100-disk-1/);
  const start = await stage.does("POST", `${qemu}/100/status/start`);
  assert.equal(start, "you can't start a vm if it's a template");
});
