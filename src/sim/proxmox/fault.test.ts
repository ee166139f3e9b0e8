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

test("two who ask for the next id get the same, and the second create loses", async () => {
  const stage = new Stage();
  const ask = async (): Promise<unknown> => (await stage.call("GET", "/cluster/nextid")).data;
  const [first, second] = [await ask(), await ask()];
  assert.equal(first, second);
  const calls = ["pve1", "pve2"].map((node) => {
    return stage.begin("POST", `/nodes/${node}/qemu`, { vmid: Number(first), name: node });
  });
  const replies = await stage.settle(Promise.all(calls));
  const statuses = replies.map(({ status }) => status).sort((left, right) => left - right);
  assert.deepEqual(statuses, [200, 500]);
  const lost = replies.find(({ status }) => status === 500)?.reason ?? "";
  assert.match(lost, /^unable to create VM 100 - VM 100 already exists on node 'pve[12]'$/);
});

test("an id is given out again although volumes of it are left", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local-zfs:1" });
  stage.model.removeGuestFile(100);
  assert.equal((await stage.call("GET", "/cluster/nextid")).data, "100");
  assert.equal((await stage.volumes(100, "local-zfs")).length, 1);
});

test("a destroy can be killed at every step: whole, without disks, or a husk that says so", async () => {
  const seen = new Set<string>();
  for (let steps = 1; steps < 30; steps++) {
    const stage = new Stage();
    await created(stage, 100, { name: "mark", scsi0: "local-zfs:1", scsi1: "local-zfs:1" });
    stage.model.faults.onStep({
      verdict: { kind: "kill" },
      matches: (process) => process.name === "qmdestroy:100" && process.steps === steps,
    });
    const end = await stage.does("DELETE", `${qemu}/100`, { purge: 1 });
    if (end === "OK") break;
    const config = await stage.config(100);
    const left = (await stage.volumes(100, "local-zfs")).length;
    seen.add(`${String(config["name"])} ${String(config["lock"])} ${left}`);
    if (config["name"] === undefined) continue;
    assert.equal(await stage.does("DELETE", `${qemu}/100`), "OK", "it can be repeated");
  }
  assert.deepEqual([...seen].sort(), [
    "mark undefined 0",
    "mark undefined 1",
    "mark undefined 2",
    "undefined destroyed 0",
    // Killed after its last effect: it is gone.
    "undefined undefined 0",
  ]);
});

test("a change of several options can be killed between any two: the earlier ones wait", async () => {
  const seen = new Set<string>();
  for (let steps = 1; steps < 30; steps++) {
    const stage = new Stage();
    await created(stage, 100);
    stage.model.faults.onStep({
      verdict: { kind: "kill" },
      matches: (process) => process.name === "qmconfig:100" && process.steps === steps,
    });
    const change = { cores: 2, sockets: 2, memory: 1024 };
    const end = await stage.does("POST", `${qemu}/100/config`, change);
    if (end === "OK") break;
    const { data } = await stage.call("GET", `${qemu}/100/pending`);
    const rows = Array.isArray(data) ? data.map(membersOf) : [];
    const waiting = rows.filter((row) => "pending" in row).map((row) => String(row["key"]));
    seen.add(waiting.sort().join(","));
    assert.equal((await stage.config(100))["lock"], undefined);
  }
  assert.ok(seen.has("cores,sockets") && seen.has("cores,memory,sockets"), [...seen].join("; "));
});

test("a husk is in no pool: rights that come from one do not reach it", async () => {
  const stage = new Stage();
  const { users, acl } = stage.model.cluster.state;
  const token = { tokenid: "t", secret: "s", privsep: 0, expire: 0 };
  users.push({ userid: "lim@pve", isEnabled: true, tokens: [token] });
  const grant = { type: "user", ugid: "lim@pve", propagate: 1 } as const;
  acl.push({ ...grant, path: "/pool/p", roleid: "PVEVMAdmin" });
  assert.equal((await stage.call("POST", "/pools", { poolid: "p" })).status, 200);
  const as = "lim@pve!t=s";
  stage.model.faults.onStep({
    verdict: { kind: "kill" },
    matches: ({ name }, step) => name === "qmcreate:100" && step.name === "start of worker",
  });
  const reply = await stage.call("POST", qemu, { vmid: 100, pool: "p", as });
  assert.equal(reply.status, 200);
  stage.clock.advance(5_000);
  assert.equal((await stage.call("GET", `${qemu}/100/config`, { as })).status, 403);
  assert.equal((await stage.call("DELETE", `${qemu}/100`, { as })).status, 403);
  assert.equal((await stage.config(100))["lock"], "create");
});

test("a member leaves its pool with its guest, and a pool with members stays", async () => {
  const stage = new Stage();
  await stage.call("POST", "/pools", { poolid: "p" });
  await created(stage, 100, { pool: "p" });
  const refused = await stage.call("DELETE", "/pools/p");
  assert.match(refused.reason, /pool 'p' is not empty \(contains VM 100\)$/);
  assert.equal(await stage.does("DELETE", `${qemu}/100`), "OK");
  await created(stage, 100);
  const { data } = await stage.call("GET", "/pools/p");
  assert.deepEqual(membersOf(data)["members"], [], "a later guest of that id is no member");
  assert.equal((await stage.call("DELETE", "/pools/p")).status, 200);
});

test("a create that is killed before its pool leaves a whole guest that is in none", async () => {
  const stage = new Stage();
  await stage.call("POST", "/pools", { poolid: "p" });
  stage.model.faults.onStep({
    verdict: { kind: "kill" },
    matches: ({ name }, step) => name === "qmcreate:100" && step.name === "add to pool",
  });
  const create = { vmid: 100, name: "mark", pool: "p" };
  assert.equal(await stage.does("POST", qemu, create), "unexpected status");
  const config = await stage.config(100);
  assert.deepEqual([config["name"], config["lock"]], ["mark", undefined]);
  assert.deepEqual(membersOf((await stage.call("GET", "/pools/p")).data)["members"], []);
});

test("a digest is of the whole file: whoever writes anything in between is found out", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local-zfs:1" });
  const { digest } = await stage.config(100);
  const change = { name: "ours", digest: String(digest) };
  assert.equal(await stage.does("POST", `${qemu}/100/snapshot`, { snapname: "s1" }), "OK");
  assert.match(
    (await stage.call("PUT", `${qemu}/100/config`, change)).reason,
    /^checksum mismatch/,
  );
  const moved = { disk: "scsi0", storage: "local", digest: String(digest) };
  const text = "detected modified configuration - file changed by other user? Try again.";
  assert.equal((await stage.call("POST", `${qemu}/100/move_disk`, moved)).reason, text);
  const grow = { disk: "scsi0", size: "2G", digest: String(digest) };
  assert.match(await stage.does("PUT", `${qemu}/100/resize`, grow), /^checksum mismatch/);
});

test("a node that is down hides its guests' state, not their existence", async () => {
  const stage = new Stage();
  await created(stage, 100, { name: "kept" });
  stage.clock.advance(10_000);
  stage.model.crashNode("pve1");
  const { data } = await stage.call("GET", "/cluster/resources", { type: "vm", via: "pve2" });
  const row = membersOf(Array.isArray(data) ? data[0] : undefined);
  assert.deepEqual([row["vmid"], row["node"], row["status"]], [100, "pve1", "unknown"]);
});
