import type { Cluster } from "../cluster.ts";
import { copyConfig } from "../config-file.ts";
import {
  type Call,
  demandRootFor,
  demandUnlocked,
  fork,
  guestLock,
  isSet,
  vmidOf,
} from "../endpoint.ts";
import { PveError } from "../errors.ts";
import { locked, type Process, work } from "../process.ts";
import type { GuestBehaviour } from "../state.ts";
import { findVolume, usableStorage } from "../storage/storages.ts";
import { parseVolumeId } from "../storage/names.ts";
import type { Task } from "../tasks.ts";
import { varied } from "../timing.ts";
import { applyPending } from "./apply.ts";
import { drivesOf, isCdrom } from "./drive.ts";
import { guestOf } from "./guest.ts";
import { queueHa } from "./ha.ts";

/** POST …/status/start */
export function* startVm(call: Call): Process<unknown> {
  demandRootFor(call, "skiplock", "stateuri", "migratedfrom", "migration_type", "targetstorage");
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  cluster.readGuest(node, vmid);
  yield* cluster.step("start request");
  const queued = queueHa(call, { state: "started", type: "hastart" });
  if (queued !== undefined) return queued;
  const options = {
    skipsLock: isSet(parameters["skiplock"]),
    ...(parameters["machine"] === undefined ? {} : { machine: parameters["machine"] }),
  };
  return fork(call, { type: "qmstart" }, () => startWorker(cluster, { node, vmid }, options));
}

export interface StartOptions {
  readonly skipsLock?: boolean;
  readonly machine?: string;
}

/** Starts QEMU, under the guest's flock. */
export function startWorker(
  cluster: Cluster,
  { node, vmid }: { readonly node: string; readonly vmid: number },
  options: StartOptions = {},
): Process<void> {
  return locked(guestLock(node, vmid), function* () {
    const config = cluster.readGuest(node, vmid);
    if (config.main.get("template") === "1") {
      throw new PveError("you can't start a vm if it's a template");
    }
    demandUnlocked(config, options.skipsLock);
    if (cluster.isRunning(node, vmid)) throw new PveError(`VM ${vmid} already running`);
    const changed = copyConfig(config);
    yield* applyPending({ cluster, worker: { node, log: () => undefined }, vmid }, changed);
    demandMachine(cluster, node, options.machine ?? changed.main.get("machine"));
    demandVolumes(cluster, node, vmid);
    demandBridges(cluster, node, vmid);
    yield* work("start QEMU", varied(cluster.random, cluster.timing.startMs));
    const startedMs = cluster.clock.nowMs();
    const pid = cluster.nextPid();
    const guest = guestOf(cluster, node, vmid);
    const machine = { pid, startedMs, isPaused: false, ...(guest === undefined ? {} : { guest }) };
    cluster.setMachine(node, vmid, machine);
  });
}

function demandMachine(cluster: Cluster, node: string, machine: string | undefined): void {
  const version = /^pc-(?:i440fx|q35)-(\d+)\.(\d+)(?:\+pve\d+)?/.exec(machine ?? "");
  if (version === null || machine === undefined) return;
  const [major = "0"] = cluster.quirks.qemuVersion.split(".");
  if (Number(version[1]) <= Number(major)) return;
  const type = machine.includes("+pve") ? machine : `${machine}+pve0`;
  const what = `is too old to run machine type '${type}', please upgrade node '${node}'`;
  throw new PveError(`Installed QEMU version '${cluster.quirks.qemuVersion}' ${what}`);
}

function demandVolumes(cluster: Cluster, node: string, vmid: number): void {
  for (const [, drive] of drivesOf(cluster.readGuest(node, vmid).main)) {
    if (!/^[a-z][\w.-]*:/i.test(drive.file)) continue;
    usableStorage(cluster, parseVolumeId(drive.file).storage, node);
    const { volume } = findVolume(cluster, node, drive.file);
    if (volume === undefined) throw new PveError(`volume '${drive.file}' does not exist`);
    const isBroken = volume.isCorrupt === true && volume.format !== "raw" && !isCdrom(drive);
    if (isBroken) throw new PveError("start failed: QEMU exited with code 1");
  }
}

function demandBridges(cluster: Cluster, node: string, vmid: number): void {
  for (const [key, text] of cluster.readGuest(node, vmid).main) {
    const bridge = /^net\d+$/.test(key) ? /(?:^|,)bridge=([^,]+)/.exec(text)?.[1] : undefined;
    if (bridge === undefined || cluster.node(node).bridges.includes(bridge)) continue;
    if (cluster.quirks.checksBridge) throw new PveError(`bridge '${bridge}' does not exist`);
    throw new PveError("start failed: QEMU exited with code 1");
  }
}

/** POST …/status/stop */
export function* stopVm(call: Call): Process<unknown> {
  demandRootFor(call, "skiplock", "keepActive", "migratedfrom");
  const { cluster, node } = call;
  const vmid = vmidOf(call);
  cluster.readGuest(node, vmid);
  yield* cluster.step("stop request");
  const queued = queueHa(call, { state: "stopped", type: "hastop" });
  if (queued !== undefined) return queued;
  return fork(call, { type: "qmstop" }, () => {
    return locked(guestLock(node, vmid), function* () {
      yield* work("stop QEMU", varied(cluster.random, cluster.timing.stopMs));
      yield* endMachine(cluster, node, vmid);
    });
  });
}

/** QEMU is gone; what waited for that is applied. */
function* endMachine(cluster: Cluster, node: string, vmid: number): Process<void> {
  if (!cluster.isRunning(node, vmid)) return;
  cluster.setMachine(node, vmid, undefined);
  yield* cluster.step("QEMU ended");
  const changed = copyConfig(cluster.readGuest(node, vmid));
  yield* applyPending({ cluster, worker: { node, log: () => undefined }, vmid }, changed);
}

/** POST …/status/shutdown */
export function* shutdownVm(call: Call): Process<unknown> {
  demandRootFor(call, "skiplock", "keepActive");
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  cluster.readGuest(node, vmid);
  yield* cluster.step("shutdown request");
  if (cluster.machine(vmid)?.isPaused === true)
    throw new PveError("VM is paused - cannot shutdown");
  const queued = queueHa(call, { state: "stopped", type: "hashutdown" });
  if (queued !== undefined) return queued;
  return fork(call, { type: "qmshutdown" }, (task) => {
    const options = {
      timeoutMs: timeoutOf(parameters["timeout"]),
      isForced: isSet(parameters["forceStop"]),
    };
    return locked(guestLock(node, vmid), () => shutDown({ cluster, node, vmid, task }, options));
  });
}

const shutdownMs = 60_000;

function timeoutOf(text: string | undefined): number {
  return text === undefined ? shutdownMs : Number(text) * 1000;
}

interface Machine {
  readonly cluster: Cluster;
  readonly node: string;
  readonly vmid: number;
  readonly task: Task;
}

/** Asks the guest; a guest that does not listen is waited for, and then ended by force or kept. */
function* shutDown(
  { cluster, node, vmid, task }: Machine,
  { timeoutMs, isForced }: { timeoutMs: number; isForced: boolean },
): Process<void> {
  const machine = cluster.machine(vmid);
  if (machine === undefined) return;
  if (obeys(machine.guest)) yield* work("guest shuts down", varied(cluster.random, 500));
  else {
    yield* work("guest does not listen", timeoutMs);
    if (!isForced) throw new PveError("VM quit/powerdown failed - got timeout");
    task.log("VM still running - terminating now with SIGTERM");
  }
  yield* endMachine(cluster, node, vmid);
}

function obeys(guest: GuestBehaviour | undefined): boolean {
  return guest?.obeysShutdown === true;
}

/** POST …/status/reboot */
export function* rebootVm(call: Call): Process<unknown> {
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  yield* demandRunning(call);
  return fork(call, { type: "qmreboot" }, function* (task) {
    const timeoutMs = timeoutOf(parameters["timeout"]);
    yield* locked(guestLock(node, vmid), () => {
      return shutDown({ cluster, node, vmid, task }, { timeoutMs, isForced: false });
    });
    yield* startWorker(cluster, { node, vmid });
  });
}

function* demandRunning(call: Call): Process<void> {
  const { cluster, node } = call;
  const vmid = vmidOf(call);
  cluster.readGuest(node, vmid);
  yield* cluster.step("power request");
  if (!cluster.isRunning(node, vmid)) throw new PveError(`VM ${vmid} not running`);
}

/** POST …/status/reset */
export function* resetVm(call: Call): Process<unknown> {
  demandRootFor(call, "skiplock");
  yield* demandRunning(call);
  const { cluster } = call;
  return fork(call, { type: "qmreset" }, () => cluster.step("reset"));
}

/** POST …/status/suspend: the machine pauses. */
export function* suspendVm(call: Call): Process<unknown> {
  demandRootFor(call, "skiplock");
  yield* demandRunning(call);
  return fork(call, { type: "qmpause" }, () => setPaused(call, true));
}

/** POST …/status/resume */
export function* resumeVm(call: Call): Process<unknown> {
  demandRootFor(call, "skiplock");
  yield* demandRunning(call);
  return fork(call, { type: "qmresume" }, () => setPaused(call, false));
}

function* setPaused({ cluster, node, parameters }: Call, isPaused: boolean): Process<void> {
  const vmid = Number(parameters["vmid"]);
  yield* cluster.step("pause");
  const machine = cluster.machine(vmid);
  if (machine !== undefined) cluster.setMachine(node, vmid, { ...machine, isPaused });
}
