import assert from "node:assert/strict";
import { test } from "node:test";
import { membersOf, Stage } from "../fixture.ts";

const qemu = "/nodes/pve1/qemu";
const image = "import-from=local:import/debian-12-generic-amd64.qcow2";

async function created(stage: Stage, vmid: number, more = {}): Promise<void> {
  assert.equal(await stage.does("POST", qemu, { vmid, ...more }), "OK");
}

async function started(stage: Stage, vmid: number, more = {}): Promise<void> {
  await created(stage, vmid, { scsi0: `local:0,${image}`, ...more });
  assert.equal(await stage.does("POST", `${qemu}/${vmid}/status/start`), "OK");
}

async function statusOf(stage: Stage, vmid: number, node = "pve1"): Promise<unknown> {
  const { data } = await stage.call("GET", `/nodes/${node}/qemu/${vmid}/status/current`);
  return membersOf(data)["status"];
}

function tasksOf(stage: Stage, type: string): { user: string; exitStatus?: string }[] {
  return stage.model.cluster.node("pve1").tasks.filter((task) => task.type === type);
}

test("a guest that needs longer than its caller waits goes down later all the same", async () => {
  const stage = new Stage();
  await started(stage, 100);
  const guest = stage.model.cluster.machine(100)?.guest;
  assert.ok(guest);
  guest.shutdownMs = 20_000;
  const end = await stage.does("POST", `${qemu}/100/status/shutdown`, { timeout: 5 });
  assert.equal(end, "VM quit/powerdown failed - got timeout");
  assert.equal(await statusOf(stage, 100), "running");
  stage.clock.advance(20_000);
  assert.equal(await statusOf(stage, 100), "stopped");
});

test("a killed shutdown does not keep the guest up", async () => {
  const stage = new Stage();
  await started(stage, 100);
  stage.model.faults.onStep({
    verdict: { kind: "kill" },
    matches: (_, step) => step.name === "wait for the guest",
  });
  assert.equal(await stage.does("POST", `${qemu}/100/status/shutdown`), "unexpected status");
  stage.clock.advance(5_000);
  assert.equal(await statusOf(stage, 100), "stopped");
});

test("a guest that does not listen is ended by force if asked, after its own time", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local:1", startup: "order=1,down=7" });
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  const before = stage.clock.nowMs();
  assert.equal(await stage.does("POST", `${qemu}/100/status/shutdown`, { forceStop: 1 }), "OK");
  const tookMs = stage.clock.nowMs() - before;
  assert.ok(tookMs >= 7_000 && tookMs < 9_000, `it took ${tookMs} ms`);
});

test("a stop can overrule a shutdown that waits; without that it waits for the flock", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local:1" });
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  const waiting = await stage.call("POST", `${qemu}/100/status/shutdown`, { timeout: 300 });
  stage.clock.advance(100);
  const refused = await stage.does("POST", `${qemu}/100/status/stop`);
  assert.equal(refused, "can't lock file '/var/lock/qemu-server/lock-100.conf' - got timeout");
  const overruling = { "overrule-shutdown": 1 };
  assert.equal(await stage.does("POST", `${qemu}/100/status/stop`, overruling), "OK");
  assert.equal(await stage.taskEnd(waiting.data), "received interrupt");
  assert.equal(await statusOf(stage, 100), "stopped");
});

test("a reboot ends when the guest is down; root@pam's own task starts it, with what waited", async () => {
  const stage = new Stage();
  await started(stage, 100, { memory: 512 });
  const change = await stage.call("PUT", `${qemu}/100/config`, { memory: 1024 });
  assert.equal(change.status, 200);
  const current = async (): Promise<unknown> => {
    const { data } = await stage.call("GET", `${qemu}/100/config`, { current: 1 });
    return membersOf(data)["memory"];
  };
  assert.equal(await current(), "512");
  assert.equal(await stage.does("POST", `${qemu}/100/status/reboot`), "OK");
  stage.clock.advance(5_000);
  assert.equal(await statusOf(stage, 100), "running");
  assert.equal(await current(), "1024");
  assert.equal(tasksOf(stage, "qmstart").at(-1)?.user, "root@pam");
});

test("a reboot that timed out does not turn a later shutdown into one", async () => {
  const stage = new Stage();
  await created(stage, 100, { scsi0: "local:1" });
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  const end = await stage.does("POST", `${qemu}/100/status/reboot`, { timeout: 2 });
  assert.equal(end, "VM quit/powerdown failed - got timeout");
  assert.equal(await stage.does("POST", `${qemu}/100/status/stop`), "OK");
  stage.clock.advance(30_000);
  assert.equal(await statusOf(stage, 100), "stopped");
});

test("a paused machine keeps its memory, and is not shut down but by force", async () => {
  const stage = new Stage();
  await started(stage, 100);
  assert.equal(await stage.does("POST", `${qemu}/100/status/suspend`), "OK");
  const { data } = await stage.call("GET", `${qemu}/100/status/current`);
  assert.equal(membersOf(data)["qmpstatus"], "paused");
  for (const verb of ["shutdown", "reboot"]) {
    const refused = await stage.does("POST", `${qemu}/100/status/${verb}`);
    assert.equal(refused, "500 VM is paused - cannot shutdown");
  }
  assert.equal(await stage.does("POST", `${qemu}/100/status/resume`), "OK");
  assert.equal(await stage.does("POST", `${qemu}/100/status/suspend`), "OK");
  assert.equal(await stage.does("POST", `${qemu}/100/status/shutdown`, { forceStop: 1 }), "OK");
  assert.equal(await statusOf(stage, 100), "stopped");
});

test("memory that is saved to disk has a volume and a lock, and goes when it is resumed", async () => {
  const stage = new Stage();
  await started(stage, 100, { memory: 1024 });
  assert.equal(await stage.does("POST", `${qemu}/100/status/suspend`, { todisk: 1 }), "OK");
  const suspended = await stage.config(100);
  assert.equal(suspended["lock"], "suspended");
  assert.match(
    String(suspended["vmstate"]),
    /^local:100\/vm-100-state-suspend-\d{4}-\d\d-\d\d\.raw$/,
  );
  assert.equal(await statusOf(stage, 100), "stopped");
  assert.equal((await stage.volumes(100)).length, 2);
  const changed = await stage.call("PUT", `${qemu}/100/config`, { name: "x" });
  assert.equal(changed.reason, "VM is locked (suspended)");
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "OK");
  assert.equal((await stage.config(100))["lock"], undefined);
  assert.equal((await stage.volumes(100)).length, 1);
});

test("a guest that runs and is still called suspended is unlocked with its memory", async () => {
  const stage = new Stage();
  await started(stage, 100);
  assert.equal(await stage.does("POST", `${qemu}/100/status/suspend`, { todisk: 1 }), "OK");
  stage.model.faults.onStep({
    verdict: { kind: "kill" },
    matches: ({ name }, step) => name === "qmstart:100" && step.name.startsWith("free "),
  });
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "unexpected status");
  assert.equal(await statusOf(stage, 100), "running");
  assert.equal(await stage.does("POST", `${qemu}/100/status/stop`), "VM is locked (suspended)");
  assert.equal((await stage.call("PUT", `${qemu}/100/config`, { delete: "vmstate" })).status, 200);
  const config = await stage.config(100);
  assert.deepEqual([config["lock"], config["vmstate"]], [undefined, undefined]);
  const file = stage.model.cluster.state.guests["100"]?.text ?? "";
  assert.match(file, /^delete: runningcpu,runningmachine$/m, "these wait for the next start");
  assert.equal(await stage.does("POST", `${qemu}/100/status/stop`), "OK");
});

test("a token can throw saved memory away, and so unlock a suspended guest, or destroy it", async () => {
  const stage = new Stage();
  for (const vmid of [100, 101]) {
    await started(stage, vmid);
    assert.equal(await stage.does("POST", `${qemu}/${vmid}/status/suspend`, { todisk: 1 }), "OK");
  }
  const dropped = await stage.call("PUT", `${qemu}/100/config`, { delete: "vmstate" });
  assert.equal(dropped.status, 200);
  const config = await stage.config(100);
  assert.deepEqual(
    [config["lock"], config["vmstate"], config["runningmachine"]],
    [undefined, undefined, undefined],
  );
  assert.equal((await stage.volumes(100)).length, 1);
  assert.equal(await stage.does("DELETE", `${qemu}/101`), "OK");
  assert.deepEqual(await stage.volumes(101), []);
});

test("a hibernation that is killed leaves its lock and volume, and the machine running", async () => {
  const stage = new Stage();
  await started(stage, 100);
  stage.model.faults.onStep({
    verdict: { kind: "kill" },
    matches: ({ name }, step) => name === "qmsuspend:100" && step.name === "copy begins",
  });
  const end = await stage.does("POST", `${qemu}/100/status/suspend`, { todisk: 1 });
  assert.equal(end, "unexpected status");
  assert.equal((await stage.config(100))["lock"], "suspending");
  assert.equal(await statusOf(stage, 100), "running");
  assert.equal(await stage.does("POST", `${qemu}/100/status/stop`), "VM is locked (suspending)");
});

test("a config lock is in the way of every change of power but a stop of what is off", async () => {
  const stage = new Stage();
  await started(stage, 100);
  stage.model.setLock(100, "migrate");
  for (const verb of ["stop", "shutdown", "reset", "suspend"]) {
    assert.equal(await stage.does("POST", `${qemu}/100/status/${verb}`), "VM is locked (migrate)");
  }
  stage.model.killMachine(100);
  assert.equal(await stage.does("POST", `${qemu}/100/status/stop`), "OK");
  assert.equal(await stage.does("POST", `${qemu}/100/status/start`), "VM is locked (migrate)");
});
