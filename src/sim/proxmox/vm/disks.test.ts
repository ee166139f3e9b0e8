import assert from "node:assert/strict";
import { test } from "node:test";
import { Stage } from "../fixture.ts";

const qemu = "/nodes/pve1/qemu";

async function created(stage: Stage, vmid: number, more = {}): Promise<void> {
  assert.equal(await stage.does("POST", qemu, { vmid, ...more }), "OK");
}

test("a disk that is taken away is unused, and is a drive again when it is put back", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local-zfs:1", scsi1: "local-zfs:1" });
  await stage.call("PUT", `${qemu}/100/unlink`, { idlist: "scsi1" });
  assert.equal((await stage.config(100))["unused0"], "local-zfs:vm-100-disk-1");
  await stage.call("PUT", `${qemu}/100/config`, { scsi2: "local-zfs:vm-100-disk-1" });
  const config = await stage.config(100);
  assert.equal(config["unused0"], undefined);
  assert.equal(config["scsi2"], "local-zfs:vm-100-disk-1,size=1G");
});

test("a disk that another one replaces is unused, and freed when it is removed from there", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local-zfs:1" });
  await stage.call("PUT", `${qemu}/100/config`, { scsi0: "local-zfs:2" });
  const config = await stage.config(100);
  assert.equal(config["scsi0"], "local-zfs:vm-100-disk-1,size=2G");
  assert.equal(config["unused0"], "local-zfs:vm-100-disk-0");
  await stage.call("PUT", `${qemu}/100/config`, { delete: "unused0" });
  assert.deepEqual(await stage.volumes(100, "local-zfs"), ["local-zfs:vm-100-disk-1"]);
});

test("a disk that only waits is unused when it is given up, and with force it is freed", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local:1", hotplug: "0" });
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  await stage.call("PUT", `${qemu}/100/config`, { scsi1: "local:1" });
  await stage.call("PUT", `${qemu}/100/config`, { delete: "scsi1" });
  assert.equal((await stage.config(100))["unused0"], "local:100/vm-100-disk-1.raw");
  await stage.does("POST", `${qemu}/100/status/stop`);
  await stage.call("PUT", `${qemu}/100/unlink`, { idlist: "scsi0", force: 1 });
  assert.deepEqual(await stage.volumes(100), ["local:100/vm-100-disk-1.raw"]);
});

test("a volume of another guest is let go, never freed and never noted as unused", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local-zfs:1" });
  await created(stage, 101, { scsi0: "local-zfs:vm-100-disk-0" });
  await stage.call("PUT", `${qemu}/101/unlink`, { idlist: "scsi0", force: 1 });
  assert.equal((await stage.config(101))["unused0"], undefined);
  assert.equal((await stage.volumes(100, "local-zfs")).length, 1);
  assert.equal(await stage.does("DELETE", `${qemu}/101`), "OK");
  assert.equal((await stage.volumes(100, "local-zfs")).length, 1);
});

test("a protected guest keeps its disks and itself, whichever way is tried", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local:1", scsi1: "local:1" });
  await stage.call("PUT", `${qemu}/100/unlink`, { idlist: "scsi1" });
  await stage.call("PUT", `${qemu}/100/config`, { protection: 1 });
  for (const [change, text] of [
    ["scsi0", "can't remove drive 'scsi0'"],
    ["unused0", "can't remove unused disk 'local:100/vm-100-disk-1.raw'"],
  ] as const) {
    const reply = await stage.call("PUT", `${qemu}/100/config`, { delete: change });
    assert.equal(reply.reason, `${text} - protection mode enabled`);
  }
  const destroyed = await stage.does("DELETE", `${qemu}/100`);
  assert.equal(destroyed, "500 can't remove VM 100 - protection mode enabled");
  assert.equal((await stage.volumes(100)).length, 2);
});

test("a disk that is moved while it runs leaves nothing, whatever others are called", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local:1,format=qcow2", scsi1: "local-zfs:1" });
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  const volumes = async (): Promise<string[]> => stage.volumes(100, "local-zfs");
  assert.deepEqual(await volumes(), ["local-zfs:vm-100-disk-0"], "named as the other's file");
  const params = { disk: "scsi1", storage: "local", delete: 1 };
  assert.equal(await stage.does("POST", `${qemu}/100/move_disk`, params), "OK");
  assert.deepEqual(await volumes(), []);
});

test("a disk that is handed over gets the next free number of its new owner", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local-zfs:1", scsi1: "local-zfs:2" });
  await created(stage, 101, { scsi0: "local-zfs:1" });
  const params = { disk: "scsi1", "target-vmid": 101, "target-disk": "scsi1" };
  const { data: upid } = await stage.call("POST", `${qemu}/100/move_disk`, params);
  assert.match(String(upid), /:qmmove:100-scsi1>101-scsi1:/);
  assert.equal(await stage.taskEnd(upid), "OK");
  assert.equal((await stage.config(101))["scsi1"], "local-zfs:vm-101-disk-1,size=2G");
  assert.equal((await stage.config(100))["scsi1"], undefined);
});

test("a hand-over that is killed leaves the disk with neither guest, under its new name", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local-zfs:1" });
  await created(stage, 101);
  stage.model.faults.onStep({
    verdict: { kind: "kill" },
    matches: (_, step) => step.name === "write target config",
  });
  const params = { disk: "scsi0", "target-vmid": 101 };
  assert.equal(await stage.does("POST", `${qemu}/100/move_disk`, params), "unexpected status");
  assert.equal((await stage.config(100))["scsi0"], undefined);
  assert.equal((await stage.config(101))["scsi0"], undefined);
  assert.deepEqual(await stage.volumes(101, "local-zfs"), ["local-zfs:vm-101-disk-0"]);
});

test("a disk is not handed over while it is used, nor to a place that is taken", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local:1,format=qcow2", ide2: "local:cloudinit" });
  await created(stage, 101, { scsi0: "local:1" });
  const move = (params: Record<string, string | number>): Promise<string> =>
    stage.does("POST", `${qemu}/100/move_disk`, { disk: "scsi0", "target-vmid": 101, ...params });
  assert.match(await move({}), /Target disk key 'scsi0' is already in use for VM '101'$/);
  assert.match(await move({ disk: "ide2" }), /CD drive contents can't be moved to another VM$/);
  assert.match(await move({ "target-vmid": 555 }), /could not find target VM 555$/);
  assert.match(await move({ "target-vmid": 100 }), /^400 /);
  assert.equal(await stage.does("POST", `${qemu}/100/snapshot`, { snapname: "s1" }), "OK");
  assert.match(await move({ "target-disk": "scsi5" }), /Can't move disk used by a snapshot/);
  assert.equal(await stage.does("DELETE", `${qemu}/100/snapshot/s1`), "OK");
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  assert.match(await move({ "target-disk": "scsi5" }), /while the source VM is running/);
});

test("a moved disk leaves its source as unused, or frees it; a kill leaves both", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local:1,format=qcow2" });
  const move = (params: Record<string, string | number>): Promise<string> =>
    stage.does("POST", `${qemu}/100/move_disk`, { disk: "scsi0", ...params });
  assert.equal(await move({ storage: "local-zfs" }), "OK");
  const config = await stage.config(100);
  assert.equal(config["scsi0"], "local-zfs:vm-100-disk-0,size=1G");
  assert.equal(config["unused0"], "local:100/vm-100-disk-0.qcow2");
  stage.model.faults.onStep({
    verdict: { kind: "kill" },
    matches: ({ name }, step) => name === "qmmove:100" && step.name === "write config",
  });
  assert.equal(await move({ storage: "shared", delete: 1 }), "unexpected status");
  assert.equal((await stage.config(100))["scsi0"], config["scsi0"]);
  assert.equal((await stage.volumes(100, "shared")).length, 1);
  assert.equal(await move({ storage: "shared", delete: 1 }), "OK");
  assert.deepEqual(await stage.volumes(100, "local-zfs"), []);
});

test("a resize that is killed leaves a volume that is larger than its config says", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local-zfs:1" });
  stage.model.faults.onStep({
    verdict: { kind: "kill" },
    matches: (_, step) => step.name === "note size",
  });
  const grow = { disk: "scsi0", size: "5G" };
  assert.equal(await stage.does("PUT", `${qemu}/100/resize`, grow), "unexpected status");
  assert.match(String((await stage.config(100))["scsi0"]), /size=1G$/);
  const volume = stage.model.volume("pve1", "local-zfs:vm-100-disk-0");
  assert.equal(volume?.sizeBytes, 5 * 1024 ** 3);
});
