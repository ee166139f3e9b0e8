import assert from "node:assert/strict";
import { test } from "node:test";
import { membersOf, Stage } from "./fixture.ts";
import { ConnectionLost, ConnectionRefused } from "./http/message.ts";

const qemu = "/nodes/pve1/qemu";
const image = "local:0,import-from=local:import/debian-12-generic-amd64.qcow2";

async function created(stage: Stage, vmid: number, more = {}): Promise<void> {
  assert.equal(await stage.does("POST", qemu, { vmid, ...more }), "OK");
}

test("a lost reply leaves the work done", async () => {
  const stage = new Stage();
  stage.model.faults.onRequest({ kind: "loseReply", matches: ({ method }) => method === "POST" });
  await assert.rejects(stage.call("POST", qemu, { vmid: 100, name: "kept" }), ConnectionLost);
  stage.clock.advance(60_000);
  assert.equal((await stage.config(100))["name"], "kept");
});

test("a lost request leaves nothing", async () => {
  const stage = new Stage();
  stage.model.faults.onRequest({ kind: "loseRequest", matches: () => true });
  await assert.rejects(stage.call("POST", qemu, { vmid: 100 }), ConnectionLost);
  assert.equal((await stage.call("GET", `${qemu}/100/config`)).status, 500);
});

test("a delayed request is done later", async () => {
  const stage = new Stage();
  stage.model.faults.onRequest({ kind: "delay", delayMs: 9_000, matches: () => true });
  const before = stage.clock.nowMs();
  await stage.call("GET", "/version");
  assert.ok(stage.clock.nowMs() - before >= 9_000);
});

test("a worker that cannot be started leaves a husk that no token can remove", async () => {
  const stage = new Stage();
  stage.model.faults.onRequest({ kind: "noWorker", matches: ({ method }) => method === "POST" });
  const reply = await stage.call("POST", qemu, { vmid: 100, name: "mark" });
  assert.equal(reply.reason, "got no worker upid - start worker failed");
  const { digest, ...rest } = await stage.config(100);
  assert.ok(digest);
  assert.deepEqual(rest, { lock: "create" });
  assert.equal(await stage.does("DELETE", `${qemu}/100`), "VM is locked (create)");
  const skipped = await stage.call("DELETE", `${qemu}/100`, { skiplock: 1 });
  assert.equal(skipped.status, 400);
});

test("a create can be killed at every step: a husk, and at most the disks made so far", async () => {
  const ends = new Set<string>();
  for (let steps = 1; steps < 40; steps++) {
    const stage = new Stage();
    const verdict = { kind: "kill" } as const;
    stage.model.faults.onStep({
      verdict,
      matches: (process) => process.name === "qmcreate:100" && process.steps === steps,
    });
    const params = { vmid: 100, scsi0: "local:1", scsi1: "local:1", name: "mark" };
    const end = await stage.does("POST", qemu, params);
    ends.add(end);
    if (end === "OK") break;
    assert.equal(end, "unexpected status");
    const config = await stage.config(100);
    if (config["name"] === undefined) assert.equal(config["lock"], "create");
    else assert.equal(config["lock"], undefined);
    assert.ok((await stage.volumes(100)).length <= 2);
  }
  assert.deepEqual([...ends], ["unexpected status", "OK"]);
});

test("an import that is killed leaves marks and digest, no lock, and one volume", async () => {
  const stage = new Stage();
  await created(stage, 100, { name: "mark" });
  const before = await stage.config(100);
  stage.model.faults.onStep({
    verdict: { kind: "kill" },
    matches: (_, step) => step.name === "qemu-img convert",
  });
  const params = { digest: String(before["digest"]), scsi0: image };
  assert.equal(await stage.does("POST", `${qemu}/100/config`, params), "unexpected status");
  assert.deepEqual(await stage.config(100), before);
  const [left = ""] = await stage.volumes(100);
  assert.equal(left, "local:100/vm-100-disk-0.qcow2");
  assert.equal(await stage.does("DELETE", `/nodes/pve1/storage/local/content/${left}`), "OK");
  assert.equal(await stage.does("POST", `${qemu}/100/config`, params), "OK");
  const again = await stage.call("POST", `${qemu}/100/config`, params);
  assert.equal(again.reason, "checksum mismatch (file change by other user?)");
});

test("a step that fails is cleaned up after", async () => {
  const stage = new Stage();
  stage.model.faults.onStep({
    verdict: { kind: "fail", error: new Error("out of luck") },
    matches: (_, step) => step.name === "made scsi0",
  });
  const end = await stage.does("POST", qemu, { vmid: 100, scsi0: "local:1" });
  assert.equal(end, "unable to create VM 100 - out of luck");
  assert.equal((await stage.call("GET", `${qemu}/100/config`)).status, 500);
  assert.deepEqual(await stage.volumes(100), []);
});

test("a node that loses power takes its machines and workers with it, not its disks", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local:1" });
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  const { data: upid } = await stage.call("POST", qemu, { vmid: 101, scsi0: "local:1" });
  stage.model.crashNode("pve1");
  await assert.rejects(stage.call("GET", "/version", { via: "pve1" }), ConnectionRefused);
  const passedOn = await stage.call("GET", `${qemu}/100/config`, { via: "pve2" });
  assert.equal(passedOn.status, 595);
  stage.model.startNode("pve1");
  assert.equal(await stage.taskEnd(upid), "unexpected status");
  const { data } = await stage.call("GET", `${qemu}/100/status/current`);
  assert.equal(membersOf(data)["status"], "stopped");
  assert.equal((await stage.config(101))["lock"], "create");
  assert.equal((await stage.volumes(100)).length, 1);
});

test("without quorum nothing is written", async () => {
  const stage = new Stage();
  await created(stage, 100);
  stage.model.faults.hasNoQuorum = true;
  const refused = await stage.call("POST", qemu, { vmid: 101 });
  assert.equal(refused.reason, "cluster not ready - no quorum?");
  const changed = await stage.call("PUT", `${qemu}/100/config`, { name: "x" });
  assert.match(changed.reason, /Permission denied$/);
  stage.model.faults.hasNoQuorum = false;
  assert.equal((await stage.config(100))["name"], undefined);
});

test("two of three nodes down are no quorum", async () => {
  const stage = new Stage();
  stage.model.crashNode("pve2");
  assert.equal(await stage.does("POST", qemu, { vmid: 100 }), "OK");
  stage.model.crashNode("pve3");
  assert.match(await stage.does("POST", qemu, { vmid: 101 }), /no quorum/);
});

test("a full storage fails the task in its own words and leaves nothing", async () => {
  const stage = new Stage();
  stage.model.setCapacity("pve1:rpool/data", 1024 ** 3);
  const end = await stage.does("POST", qemu, { vmid: 100, scsi0: "local-zfs:2" });
  assert.match(end, /zfs error: cannot create 'rpool\/data\/vm-100-disk-0': out of space$/);
  assert.equal((await stage.call("GET", `${qemu}/100/config`)).status, 500);
});

test("lists lag behind by a broadcast, and a frozen board shows nothing new", async () => {
  const stage = new Stage();
  await created(stage, 100, { name: "first" });
  const row = async (): Promise<Record<string, unknown>> => {
    const { data } = await stage.call("GET", "/cluster/resources", { type: "vm" });
    return membersOf(Array.isArray(data) ? data[0] : undefined);
  };
  assert.equal((await row())["status"], "unknown");
  stage.clock.advance(10_000);
  assert.deepEqual([(await row())["status"], (await row())["name"]], ["stopped", "first"]);
  stage.model.cluster.board.freeze();
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  stage.clock.advance(60_000);
  assert.equal((await row())["status"], "stopped");
  stage.model.cluster.board.thaw();
  assert.equal((await row())["status"], "running");
});

test("a stranger can take an id, and edits under a digest are refused", async () => {
  const stage = new Stage();
  stage.model.writeGuestFile("pve2", 100, "name: theirs\n");
  const taken = await stage.call("POST", qemu, { vmid: 100 });
  assert.equal(taken.reason, "unable to create VM 100 - VM 100 already exists on node 'pve2'");
  const { digest } = await stage.config(100, "pve2");
  stage.model.writeGuestFile("pve2", 100, "name: edited\n");
  const params = { name: "ours", digest: String(digest) };
  const stale = await stage.call("PUT", "/nodes/pve2/qemu/100/config", params);
  assert.match(stale.reason, /^checksum mismatch/);
});

test("a silent agent holds its caller up", async () => {
  const stage = new Stage();
  await created(stage, 100, { agent: 1, scsi0: image });
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  const machine = stage.model.cluster.machine(100);
  assert.ok(machine?.guest);
  machine.guest.agent = "silent";
  const before = stage.clock.nowMs();
  const reply = await stage.call("POST", `${qemu}/100/agent/ping`);
  assert.equal(reply.reason, "QEMU guest agent is not running");
  assert.ok(stage.clock.nowMs() - before >= 3_000);
});

test("after thirty seconds nobody waits, and the work goes on", async () => {
  const stage = new Stage();
  await created(stage, 100);
  stage.model.cluster.slowStorageMs = 40_000;
  const reply = await stage.call("PUT", `${qemu}/100/config`, { scsi0: "local:1" });
  assert.equal(reply.status, 596);
  stage.clock.advance(60_000);
  assert.equal((await stage.config(100))["scsi0"], "local:100/vm-100-disk-0.raw,size=1G");
});

test("three workers serve a node; the fourth call waits", async () => {
  const stage = new Stage();
  for (const vmid of [100, 101, 102, 103]) await created(stage, vmid);
  stage.model.cluster.slowStorageMs = 5_000;
  const ends: number[] = [];
  const calls = ["local", "local-zfs", "shared"].map((storage, index) => {
    return stage.begin("PUT", `${qemu}/${100 + index}/config`, { scsi0: `${storage}:1` });
  });
  const last = stage.begin("PUT", `${qemu}/103/config`, { name: "x" });
  for (const call of [...calls, last]) void call.then(() => ends.push(stage.clock.nowMs()));
  const begun = stage.clock.nowMs();
  await stage.settle(Promise.all([...calls, last]));
  assert.ok(ends.every((end) => end - begun >= 5_000));
});

test("what was under way when the simulator ended has ended without a word", async () => {
  const stage = new Stage();
  await created(stage, 100, { name: "kept", scsi0: "local:1" });
  const { data: upid } = await stage.call("POST", qemu, { vmid: 101, scsi0: "local:1" });
  stage.reload();
  assert.equal(await stage.taskEnd(upid), "unexpected status");
  assert.equal((await stage.config(100))["name"], "kept");
  assert.equal((await stage.config(101))["lock"], "create");
  assert.equal((await stage.call("GET", "/cluster/nextid", { vmid: 101 })).status, 400);
});

test("the same seed gives the same history", async () => {
  const history = async (): Promise<string> => {
    const stage = new Stage();
    await created(stage, 100, { scsi0: image, net0: "virtio,bridge=vmbr0" });
    await stage.does("POST", `${qemu}/100/clone`, { newid: 101, full: 1 });
    return stage.model.save();
  };
  assert.equal(await history(), await history());
});
