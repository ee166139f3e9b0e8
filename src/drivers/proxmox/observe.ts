import { answered, failed } from "../../hypervisor/index.ts";
import type {
  Answer,
  ClaimedMachine,
  Failure,
  Lock,
  Machine,
  ObserveHints,
  Seen,
} from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { DriverContext } from "./context.ts";
import { readStatus } from "./config-reader.ts";
import type { MachinePlace, MachineStatus, WholeConfig } from "./config-reader.ts";
import { findClone } from "./clones.ts";
import { classifyError, readFailureOf } from "./errors.ts";
import { readGuard, seenGuard } from "./high-availability.ts";
import { isUnstampedClone, judge, type Verdict } from "./identity.ts";
import { tasksBehind } from "./lock-tasks.ts";
import { deadLock, judgeLock, lockKind, workOf } from "./locks.ts";
import { type ListedTask, listTasks, type TaskQuery } from "./tasks.ts";
import type { PveConfig } from "./translate/config.ts";
import { readMachine } from "./translate/machine.ts";
import { present } from "./translate/present.ts";
import { rowsOf, textOf } from "./wire/rows.ts";

/** What stands under a Claim. Reads only. */
export async function observe(
  context: DriverContext,
  claim: ClaimedMachine,
  hints: ObserveHints = {},
): Promise<Seen> {
  const found = await findConfig(context, claim, hints.expectsNothing === true);
  if (found.type === "settled") return found.seen;
  const { node, config } = found;
  const verdict = judge(config, claim);
  if (verdict.is === "husk") {
    return await judgeHusk(context, { claim, node, lock: verdict.lock }, hints);
  }
  if (verdict.is === "foreign" && hints.clonedFrom !== undefined) {
    const clone = await judgeClone(context, { claim, node, config, verdict }, hints);
    if (clone !== undefined) return clone;
  }
  return await look(context, { claim, node, config, verdict }, hints);
}

type Found =
  | { readonly type: "found"; readonly node: string; readonly config: WholeConfig }
  | { readonly type: "settled"; readonly seen: Seen };

/** On the node where it was, and where it is not there any more, wherever the cluster says. */
async function findConfig(
  context: DriverContext,
  claim: ClaimedMachine,
  expectsNothing: boolean,
): Promise<Found> {
  const { externalId, node } = claim;
  if (node !== undefined && !expectsNothing) {
    const read = await context.configs.read({ node, externalId });
    if (read.type === "config") return { type: "found", node, config: read.config };
    if (read.type === "failed") return unknown(read.failure);
  }
  return await searchCluster(context, externalId);
}

/**
 * `nextid` says of one id whether anything has it, in the whole cluster, and is filtered by no
 * right. A free id proves an absence only if a majority of the cluster stands behind the answer.
 */
async function searchCluster(context: DriverContext, externalId: string): Promise<Found> {
  const { api } = context;
  const probe = await api.get("/cluster/nextid", { vmid: externalId });
  if (probe.type === "data") return await proveAbsence(context, probe.from);
  const attempted = `ask whether the id ${externalId} is free`;
  if (probe.type !== "error" || classifyError(probe).meaning !== "taken") {
    return unknown(readFailureOf(probe, attempted));
  }
  const list = await api.get("/cluster/resources", { type: "vm" });
  if (list.type !== "data") return unknown(readFailureOf(list, "list the machines"));
  const rows = rowsOf(list.data);
  const row = rows.find((candidate) => textOf(candidate, "vmid") === externalId);
  if (row === undefined) return unknown(hidden(externalId));
  const node = textOf(row, "node");
  if (row["type"] !== "qemu") {
    const detail = `the id ${externalId} belongs to a container on ${node}`;
    return settled({ at: "foreign", reason: "OtherKind", detail, node });
  }
  const read = await context.configs.read({ node, externalId });
  if (read.type === "config") return { type: "found", node, config: read.config };
  if (read.type === "failed") return unknown(read.failure);
  return unknown({ category: "NodeUnhealthy", message: `VM ${externalId} is between two nodes` });
}

async function proveAbsence({ api }: DriverContext, from: string): Promise<Found> {
  const status = await api.get("/cluster/status");
  if (status.type !== "data") return unknown(readFailureOf(status, "ask for the quorum"));
  const rows = rowsOf(status.data);
  const cluster = rows.find((row) => row["type"] === "cluster");
  // A node on its own has no cluster, and always its own majority.
  const isQuorate = cluster === undefined || Number(cluster["quorate"]) === 1;
  if (!guard("absence-quorum", isQuorate)) {
    return unknown({ category: "NodeUnhealthy", message: `${from} is cut off from its cluster` });
  }
  // Both answers must be the same node's: an isolated one may call an id free that is not.
  if (!guard("absence-same-endpoint", status.from === from)) {
    return unknown({ category: "NetworkError", message: "the endpoint changed in between" });
  }
  return settled({ at: "absent" });
}

function hidden(externalId: string): Failure {
  return {
    category: "PermissionDenied",
    message: `something has the id ${externalId}, and the token may not see it`,
    remedy: "Grant VM.Audit on /vms, with propagation, to the token and its user.",
  };
}

interface Husk {
  readonly claim: ClaimedMachine;
  readonly node: string;
  readonly lock: string;
}

/** Ours by the reserved id and our own task, or by our record that no task could be started. */
async function judgeHusk(
  context: DriverContext,
  { claim, node, lock }: Husk,
  hints: ObserveHints,
): Promise<Seen> {
  const { externalId } = claim;
  if (lock === "clone" && hints.clonedFrom !== undefined) {
    const task = await findClone(context, { ...claim, node }, hints.clonedFrom);
    if (!task.ok) return { at: "unknown", failure: task.failure };
    if (task.value !== undefined) {
      return { at: "opaque", node, lock: cloneLock(lock, { ...claim, node }, task.value) };
    }
  }
  const tasks = await listTasks(context, { node, externalId, sinceMs: since(claim, hints) });
  if (!tasks.ok) return { at: "unknown", failure: tasks.failure };
  const place = { externalId, node, isHusk: true };
  const judged = judgeLock(lock, { tasks: tasks.value, user: context.user }, place);
  if (judged.task !== undefined) return { at: "opaque", node, lock: judged };
  const neverStarted = guard("placeholder-no-worker", hints.workerNeverStarted === true);
  if (neverStarted && guard("placeholder-no-task", tasks.value.length === 0)) {
    return { at: "opaque", node, lock: deadLock(lock, place) };
  }
  const detail = `an empty machine, locked (${lock}) by work that was not ours`;
  return { at: "foreign", reason: "Husk", detail, node };
}

/** Our own clone that bears our mark and not yet our identity; undefined if it is none. */
async function judgeClone(
  context: DriverContext,
  sighting: Sighting,
  hints: ObserveHints,
): Promise<Seen | undefined> {
  const { claim, node, config } = sighting;
  if (!guard("clone-marker-agrees", isUnstampedClone(config, claim))) return undefined;
  const task = await findClone(context, { ...claim, node }, hints.clonedFrom ?? "");
  if (!task.ok) return { at: "unknown", failure: task.failure };
  if (task.value === undefined) return undefined;
  const lock = config.values["lock"];
  if (lock !== undefined) return { at: "opaque", node, lock: cloneLock(lock, claim, task.value) };
  const detail = "our own clone, which has to be stamped";
  const verdict = { is: "foreign", reason: "Unstamped", detail } as const;
  return await look(context, { ...sighting, verdict }, hints);
}

function cloneLock(
  lock: string,
  { externalId, node = "" }: ClaimedMachine,
  task: ListedTask,
): Lock {
  if (!task.isRunning) return deadLock(lock, { externalId, node, isHusk: true }, task);
  return { kind: lockKind(lock), detail: lock, state: "Held", ...workOf(task) };
}

interface Sighting {
  readonly claim: ClaimedMachine;
  readonly node: string;
  readonly config: WholeConfig;
  readonly verdict: Exclude<Verdict, { is: "husk" }>;
}

async function look(
  context: DriverContext,
  { claim, node, config, verdict }: Sighting,
  hints: ObserveHints,
): Promise<Seen> {
  const place = { node, externalId: claim.externalId };
  const state = await readState(context, place, hints.withoutPower === true);
  if (!state.ok) return { at: "unknown", failure: state.failure };
  const { watchedAs, ...status } = state.value;
  const query = { ...place, sinceMs: since(claim, hints) };
  const lock = await readLock(context, query, { ...config, power: status.power });
  if (!lock.ok) return { at: "unknown", failure: lock.failure };
  const machine = readMachine(config, {
    ...place,
    ...status,
    pendingKeys: config.pending.keys,
    leavingDrives: config.pending.leavingDrives,
    ...present({
      lock: lock.value,
      names: hints.names,
      currentBoot: config.pending.current["boot"],
    }),
  });
  if (verdict.is === "foreign") {
    return { at: "foreign", reason: verdict.reason, detail: verdict.detail, node, machine };
  }
  return await withGuard(context, machine, watchedAs);
}

/** How it is watched over is asked only of a machine that is. */
async function withGuard(
  { api }: DriverContext,
  machine: Machine,
  watchedAs: string | undefined,
): Promise<Seen> {
  const isKnown = machine.power !== "Unknown";
  if (watchedAs === undefined && !isKnown) return { at: "ours", machine };
  const watched =
    watchedAs === undefined ? answered(undefined) : await readGuard(api, machine.externalId);
  if (!watched.ok) return { at: "unknown", failure: watched.failure };
  const { shape = { enabled: false }, requested } = watched.value ?? {};
  const seen = requested && seenGuard(machine.externalId, requested, watchedAs);
  return {
    at: "ours",
    machine: {
      ...machine,
      shape: { ...machine.shape, highAvailability: shape },
      ...present({ highAvailability: seen }),
    },
  };
}

async function readState(
  { api }: DriverContext,
  place: MachinePlace,
  withoutPower: boolean,
): Promise<Answer<MachineStatus>> {
  if (withoutPower) return answered({ power: "Unknown" });
  const status = await readStatus(api, place);
  if (status.ok || status.failure.category !== "UnknownOutcome") return status;
  // Its configuration was read a moment ago: it was moved or replaced in between, and only another
  // look tells by what.
  const message = `VM ${place.externalId} changed while it was looked at.`;
  return failed({ ...status.failure, message });
}

/** Tasks are asked for only where there is a lock to explain. */
async function readLock(
  context: DriverContext,
  query: TaskQuery,
  { values, power }: PveConfig & Pick<MachineStatus, "power">,
): Promise<Answer<Lock | undefined>> {
  const { lock, vmstate } = values;
  // What is suspended to disk bears this word until it goes on: a state, and nobody's work. It also
  // goes with the saved memory; but beside a machine that runs without any, it is a lock.
  const isAwake = (power === "Running" || power === "Paused") && vmstate === undefined;
  if (lock === undefined || (lock === "suspended" && !isAwake)) return answered(undefined);
  const tasks = await tasksBehind(context, lock, query);
  if (!tasks.ok) return tasks;
  const { user } = context;
  return answered(judgeLock(lock, { tasks: tasks.value, user }, { ...query, isHusk: false }));
}

/** Work of ours cannot be older than the Claim. */
function since(claim: ClaimedMachine, hints: ObserveHints): number {
  const reservedMs = claim.reservedAt === undefined ? 0 : Date.parse(claim.reservedAt);
  return hints.sinceMs ?? (Number.isFinite(reservedMs) ? reservedMs : 0);
}

function unknown(failure: Failure): Found {
  return settled({ at: "unknown", failure });
}

function settled(seen: Seen): Found {
  return { type: "settled", seen };
}
