import {
  type Call,
  demandRootFor,
  demandUnlocked,
  fork,
  guestLock,
  isSet,
  vmidOf,
} from "../endpoint.ts";
import { parameterError, PveError } from "../errors.ts";
import { locked, type Process, work } from "../process.ts";
import { varied } from "../timing.ts";
import { queueHa } from "./ha.ts";
import { type Place, quit, shutDown } from "./machine.ts";
import { startWorker } from "./start.ts";

/** POST …/status/start */
export function* startVm(call: Call): Process<unknown> {
  demandRootFor(call, "stateuri", "skiplock", "migratedfrom", "migration_type");
  demandRootFor(call, "migration_network", "targetstorage", "force-cpu");
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  cluster.readGuest(node, vmid);
  yield* cluster.step("start request");
  cluster.demandQuorum();
  const queued = queueHa(call, { type: "hastart", verb: "start", wish: { state: "started" } });
  if (queued !== undefined) return queued;
  const options = {
    skipsLock: isSet(parameters["skiplock"]),
    ...(parameters["machine"] === undefined ? {} : { machine: parameters["machine"] }),
  };
  return fork(call, { type: "qmstart" }, (task) => {
    return startWorker(cluster, { node, vmid }, { ...options, log: task.log });
  });
}

/** POST …/status/stop */
export function* stopVm(call: Call): Process<unknown> {
  demandRootFor(call, "skiplock", "keepActive", "migratedfrom");
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  cluster.readGuest(node, vmid);
  yield* cluster.step("stop request");
  const overrules = isSet(parameters["overrule-shutdown"]);
  if (overrules && cluster.state.ha[`vm:${vmid}`] !== undefined) {
    throw parameterError({ "overrule-shutdown": "Not applicable for HA resources." });
  }
  const queued = queueHa(call, {
    type: "hastop",
    verb: "stop",
    wish: { state: "stopped", stopTimeoutMs: 0 },
  });
  if (queued !== undefined) return queued;
  return fork(call, { type: "qmstop" }, (task) => {
    if (overrules) endShutdowns(call, task.log);
    return locked(guestLock(node, vmid), () => {
      return stopWorker({ cluster, node, vmid }, isSet(parameters["skiplock"]));
    });
  });
}

/** Ends QEMU at once, under the guest's flock. */
export function* stopWorker(place: Place, skipsLock = false): Process<void> {
  const { cluster, node, vmid } = place;
  if (!cluster.isRunning(node, vmid)) return;
  demandUnlocked(cluster.readGuest(node, vmid), skipsLock);
  yield* work("stop QEMU", varied(cluster.random, cluster.timing.stopMs));
  yield* quit(place);
}

/** Stops the workers that wait for this guest to shut down: they hold its flock. */
function endShutdowns(call: Call, log: (line: string) => void): void {
  const { cluster, node } = call;
  const vmid = String(vmidOf(call));
  const running = cluster.node(node).tasks.filter(({ type, id, endMs }) => {
    return type === "qmshutdown" && id === vmid && endMs === undefined;
  });
  for (const { pid } of running) cluster.processes.terminate(pid);
  if (running.length === 0) return;
  log(`overruled qmshutdown tasks: ${running.map(({ upid }) => upid).join(", ")}`);
}

/** POST …/status/shutdown */
export function* shutdownVm(call: Call): Process<unknown> {
  demandRootFor(call, "skiplock", "keepActive");
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  cluster.readGuest(node, vmid);
  yield* cluster.step("shutdown request");
  const isForced = isSet(parameters["forceStop"]);
  const isPaused = cluster.machine(vmid)?.isPaused === true;
  // A paused guest would hear of it only when it is resumed, and end then.
  if (isPaused && !isForced) throw new PveError("VM is paused - cannot shutdown");
  const stopTimeoutMs = Number(parameters["timeout"] ?? "60") * 1000;
  const queued = queueHa(call, {
    type: "hastop",
    verb: "stop",
    wish: { state: "stopped", stopTimeoutMs },
  });
  if (queued !== undefined) return queued;
  return fork(call, { type: "qmshutdown" }, (task) => {
    const place = { cluster, node, vmid };
    const skipsLock = isSet(parameters["skiplock"]);
    const timeoutMs = timeoutOf(parameters["timeout"]);
    const options = { isForced, skipsLock, log: task.log, ...timeoutMs };
    return locked(guestLock(node, vmid), () => {
      return isPaused ? stopWorker(place, skipsLock) : shutDown(place, options);
    });
  });
}

function timeoutOf(text: string | undefined): { timeoutMs?: number } {
  return text === undefined ? {} : { timeoutMs: Number(text) * 1000 };
}

/**
 * POST …/status/reboot. The task ends when the guest is down; that QEMU ended with a reboot asked
 * for is what starts it again, in a task of root@pam.
 */
export function* rebootVm(call: Call): Process<unknown> {
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  cluster.readGuest(node, vmid);
  yield* cluster.step("reboot request");
  if (cluster.machine(vmid)?.isPaused === true) {
    throw new PveError("VM is paused - cannot shutdown");
  }
  if (!cluster.isRunning(node, vmid)) throw new PveError(`VM ${vmid} not running`);
  return fork(call, { type: "qmreboot" }, (task) => {
    const timeoutMs = timeoutOf(parameters["timeout"]);
    const options = { isForced: false, skipsLock: false, log: task.log, ...timeoutMs };
    return locked(guestLock(node, vmid), () => rebootWorker({ cluster, node, vmid }, options));
  });
}

function* rebootWorker(place: Place, options: Parameters<typeof shutDown>[1]): Process<void> {
  const { cluster, vmid } = place;
  const machine = cluster.machine(vmid);
  if (machine === undefined) return;
  machine.willReboot = true;
  try {
    yield* shutDown(place, options);
  } catch (error) {
    // A shutdown later on must not be taken for this reboot.
    delete machine.willReboot;
    throw error;
  }
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
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  return fork(call, { type: "qmreset" }, () => {
    return locked(guestLock(node, vmid), function* () {
      demandUnlocked(cluster.readGuest(node, vmid), isSet(parameters["skiplock"]));
      yield* cluster.step("reset");
    });
  });
}
