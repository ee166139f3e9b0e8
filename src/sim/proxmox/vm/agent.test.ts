import assert from "node:assert/strict";
import { test } from "node:test";
import { membersOf, Stage } from "../fixture.ts";

const qemu = "/nodes/pve1/qemu";
const image = "local:0,import-from=local:import/debian-12-generic-amd64.qcow2";

/** A guest with an agent that has come up. */
async function answering(release: "8.4" | "9.2" = "9.2"): Promise<Stage> {
  const stage = new Stage(release);
  const create = { vmid: 100, name: "web.example.org", agent: 1, scsi0: image };
  assert.equal(await stage.does("POST", qemu, create), "OK");
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  stage.clock.advance(10_000);
  return stage;
}

async function ask(stage: Stage, verb: string, command: string): Promise<unknown> {
  const { status, reason, data } = await stage.call(verb, `${qemu}/100/agent/${command}`);
  assert.equal(status, 200, reason);
  return membersOf(data)["result"];
}

test("an agent tells its host's name, system, disks and time", async () => {
  const stage = await answering();
  assert.deepEqual(await ask(stage, "GET", "get-host-name"), { "host-name": "web" });
  assert.equal(membersOf(await ask(stage, "GET", "get-osinfo"))["id"], "debian");
  assert.match(JSON.stringify(await ask(stage, "GET", "get-fsinfo")), /"mountpoint":"\/"/);
  assert.equal(await ask(stage, "GET", "get-time"), stage.clock.nowMs() * 1_000_000);
  assert.match(JSON.stringify(await ask(stage, "GET", "info")), /guest-fsfreeze-freeze/);
});

test("file systems stay frozen until they are thawed", async () => {
  const stage = await answering();
  assert.equal(await ask(stage, "POST", "fsfreeze-status"), "thawed");
  assert.equal(await ask(stage, "POST", "fsfreeze-freeze"), 1);
  assert.equal(await ask(stage, "POST", "fsfreeze-status"), "frozen");
  assert.equal(await ask(stage, "POST", "fsfreeze-thaw"), 1);
  assert.equal(await ask(stage, "POST", "fsfreeze-status"), "thawed");
});

test("a program is run, and what it printed is asked for by its pid", async () => {
  const stage = await answering();
  const path = `${qemu}/100/agent`;
  const { data } = await stage.call("POST", `${path}/exec`, { command: "echo" });
  const { pid } = membersOf(data);
  const status = await stage.call("GET", `${path}/exec-status`, { pid: Number(pid) });
  assert.equal(membersOf(status.data)["exited"], 1);
  const unknown = await stage.call("GET", `${path}/exec-status`, { pid: 7 });
  assert.equal(unknown.reason, "Agent error: PID 7 does not exist");
});

test("a file that was written is read back, until the machine is started anew", async () => {
  const stage = await answering();
  const path = `${qemu}/100/agent`;
  await stage.call("POST", `${path}/file-write`, { file: "/tmp/a", content: "text" });
  const read = await stage.call("GET", `${path}/file-read`, { file: "/tmp/a" });
  assert.equal(membersOf(read.data)["content"], "text");
  const missing = await stage.call("GET", `${path}/file-read`, { file: "/tmp/b" });
  assert.match(missing.reason, /^Agent error: failed to open file '\/tmp\/b'/);
});

test("a shutdown by way of the agent takes the machine down", async () => {
  const stage = await answering();
  await ask(stage, "POST", "shutdown");
  stage.clock.advance(5_000);
  assert.equal(stage.model.cluster.isRunning("pve1", 100), false);
});

test("each way of not answering has its own words; a paused guest stalls", async () => {
  const stage = await answering();
  const ping = (vmid = 100): Promise<{ reason: string }> =>
    stage.call("POST", `${qemu}/${vmid}/agent/ping`);
  await stage.does("POST", qemu, { vmid: 101 });
  assert.equal((await ping(101)).reason, "No QEMU guest agent configured");
  await stage.does("POST", qemu, { vmid: 102, agent: 1 });
  assert.equal((await ping(102)).reason, "VM 102 is not running");
  await stage.does("POST", `${qemu}/102/status/start`);
  assert.equal((await ping(102)).reason, "QEMU guest agent is not running");
  assert.equal(await stage.does("POST", `${qemu}/100/status/suspend`), "OK");
  const before = stage.clock.nowMs();
  assert.equal((await ping()).reason, "QEMU guest agent is not running");
  assert.ok(stage.clock.nowMs() - before >= 3_000);
});

test("silent agents take all workers of a node: others wait for them", async () => {
  const stage = await answering();
  const guest = stage.model.cluster.machine(100)?.guest;
  assert.ok(guest);
  guest.agent = "silent";
  const pings = [1, 2, 3].map(() => stage.begin("POST", `${qemu}/100/agent/ping`));
  const before = stage.clock.nowMs();
  const status = stage.begin("GET", `${qemu}/100/status/current`);
  await stage.settle(status);
  assert.ok(stage.clock.nowMs() - before >= 3_000, "pvedaemon has three workers");
  const config = stage.clock.nowMs();
  await stage.settle(Promise.all(pings));
  await stage.call("GET", `${qemu}/100/config`);
  assert.ok(stage.clock.nowMs() - config < 3_000, "pveproxy itself answers this one");
});
