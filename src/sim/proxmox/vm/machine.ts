import type { Cluster } from "../cluster.ts";
import { copyConfig } from "../config-file.ts";
import { demandUnlocked } from "../endpoint.ts";
import { PveError } from "../errors.ts";
import { type Process, work } from "../process.ts";
import type { MachineState } from "../state.ts";
import { forkTask } from "../tasks.ts";
import { varied } from "../timing.ts";
import { applyPending } from "./apply.ts";
import { startWorker } from "./start.ts";

/** A guest on a node. */
export interface Place {
  readonly cluster: Cluster;
  readonly node: string;
  readonly vmid: number;
}

export interface Shutdown {
  readonly timeoutMs?: number;
  readonly isForced: boolean;
  readonly skipsLock: boolean;
  readonly log: (line: string) => void;
}

const shutdownMs = 60_000;
const pollMs = 1_000;
const guestNeedsMs = 500;

/** Asks the guest; one that does not listen is waited for, and then ended by force or kept. */
export function* shutDown(place: Place, options: Shutdown): Process<void> {
  const { cluster, node, vmid } = place;
  const machine = cluster.machine(vmid);
  if (machine === undefined) return;
  const config = cluster.readGuest(node, vmid);
  demandUnlocked(config, options.skipsLock);
  const timeoutMs = options.timeoutMs ?? downMs(config.main.get("startup")) ?? shutdownMs;
  powerDown(place, machine);
  for (let waitedMs = 0; waitedMs < timeoutMs; waitedMs += pollMs) {
    if (!isSame(place, machine)) break;
    yield* work("wait for the guest", Math.min(pollMs, timeoutMs - waitedMs));
  }
  if (isSame(place, machine)) {
    if (!options.isForced) throw new PveError("VM quit/powerdown failed - got timeout");
    options.log("VM still running - terminating now with SIGTERM");
  }
  yield* quit(place);
}

/** "order=1,up=30,down=120": how long this guest may take. */
function downMs(startup: string | undefined): number | undefined {
  const seconds = /(?:^|,)down=(\d+)/.exec(startup ?? "")?.[1];
  return seconds === undefined || seconds === "0" ? undefined : Number(seconds) * 1000;
}

function isSame({ cluster, node, vmid }: Place, machine: MachineState): boolean {
  return cluster.node(node).machines[String(vmid)]?.pid === machine.pid;
}

/**
 * The power button. What happens then happens in the guest, whoever asked and however that one
 * ended: a guest that is slow goes down after its caller has given up.
 */
export function powerDown(place: Place, machine: MachineState): void {
  const { cluster, node, vmid } = place;
  const { guest } = machine;
  if (guest?.obeysShutdown !== true || machine.isPaused) return;
  const needsMs = guest.shutdownMs ?? varied(cluster.random, guestNeedsMs);
  cluster.processes.start({
    pid: cluster.nextPid(),
    node,
    name: `guest:${vmid}`,
    body: work("guest shuts down", needsMs),
    onEnd: ({ kind }) => {
      if (kind === "done" && isSame(place, machine)) end(place);
    },
  });
}

/** QEMU ends now; what waited for that is applied. */
export function* quit(place: Place): Process<void> {
  const { cluster, node, vmid } = place;
  if (cluster.isRunning(node, vmid)) end(place);
  yield* cluster.step("QEMU ended");
  const changed = copyConfig(cluster.readGuest(node, vmid));
  yield* applyPending({ cluster, worker: { node, log: () => undefined }, vmid }, changed);
}

/** QEMU is gone. A reboot that was asked for follows, as a task of the node's own. */
function end({ cluster, node, vmid }: Place): void {
  const machine = cluster.machine(vmid);
  cluster.setMachine(node, vmid, undefined);
  if (machine?.willReboot !== true) return;
  const task = { node, type: "qmstart", id: String(vmid), user: "root@pam" };
  forkTask(cluster, task, ({ log }) => startWorker(cluster, { node, vmid }, { log }));
}
