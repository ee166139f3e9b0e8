import type {
  ClaimedMachine,
  ForeignReason,
  Lock,
  Machine,
  Mark,
  ObserveHints,
  Seen,
  SeenVolume,
} from "../../hypervisor/index.ts";
import type { ModelMachine, ModelState, ModelTask } from "./model-state.ts";
import { busOf, nameIn, type Names, pendingOf, readShape } from "./model-shape.ts";

/** Whose a VM of the model is, and what is shown of it. Nothing changes. */

export function seenOf(state: ModelState, claim: ClaimedMachine, hints: ObserveHints = {}): Seen {
  const machine = state.machines.get(claim.externalId);
  if (machine === undefined) return { at: "absent" };
  const { node, lock, husk } = machine;
  if (husk !== undefined) {
    if (husk === "ours" && lock !== undefined) {
      return { at: "opaque", node, lock: judgedLock(state, machine, lock) };
    }
    return { at: "foreign", reason: "Husk", detail: "an empty reservation", node };
  }
  const reason = disagreement(machine, claim);
  if (reason === undefined) return { at: "ours", machine: shown(state, machine) };
  const names = machine.mark ?? hints.names;
  const isClone = hints.clonedFrom !== undefined && isOurClone(state, machine, hints.clonedFrom);
  return {
    at: "foreign",
    reason: isClone ? "Unstamped" : reason,
    detail: details[reason],
    node,
    machine: shown(state, machine, names),
  };
}

const details: Readonly<Record<ForeignReason, string>> = {
  Stranger: "it has no mark",
  Husk: "an empty reservation",
  OtherInstallation: "another installation's mark",
  OtherOwner: "another's mark",
  Copied: "a mark that was made for another VM",
  Released: "let go",
  MarkLost: "its identity is right, and its mark is gone",
  OtherKind: "no VM",
  Unstamped: "a clone of ours without its mark",
};

/** What keeps a VM from being the Claim's own; undefined if nothing does. */
export function disagreement(
  { id, mark, identity }: ModelMachine,
  claim: ClaimedMachine,
): ForeignReason | undefined {
  if (mark === undefined) return identity === claim.identity ? "MarkLost" : "Stranger";
  if (mark.installation !== claim.installation) return "OtherInstallation";
  if (mark.externalId !== id) return "Copied";
  if (mark.state === "Released" && mark.identity === identity) return "Released";
  if (!isOwner(mark, claim)) return "OtherOwner";
  const isWhole = mark.identity === claim.identity && identity === claim.identity;
  return isWhole ? undefined : "Copied";
}

function isOwner({ owner }: Mark, claim: ClaimedMachine): boolean {
  return owner.name === claim.owner.name && owner.namespace === claim.owner.namespace;
}

/** Whether our own task made it, and nobody has put another in its place since. */
export function isOurClone(
  { tasks }: ModelState,
  { id, clonedBy }: ModelMachine,
  from: string,
): boolean {
  const task = tasks.find(({ handle }) => handle === clonedBy);
  return task?.id === id && task.from === from && task.view.state === "succeeded";
}

/** A lock that a task of ours has set is dead once the task has ended without clearing it. */
function judgedLock({ tasks }: ModelState, { id }: ModelMachine, lock: Lock): Lock {
  const task = tasks.find(({ handle }) => handle === lock.task);
  if (task === undefined || isRunning(task)) return lock;
  const remedy = `Clear the lock of VM ${id} by hand.`;
  return { ...lock, state: "Dead", sinceMs: task.sinceMs, remedy };
}

export function isRunning({ view }: ModelTask): boolean {
  return view.state === "running";
}

function shown(
  state: ModelState,
  machine: ModelMachine,
  names: Names = machine.mark ?? {},
): Machine {
  const { id, node, version, power, identity, mark, lock, cards, started, guarded } = machine;
  const uptimeSeconds = Math.floor((state.nowMs() - (started?.sinceMs ?? 0)) / 1000);
  return {
    externalId: id,
    node,
    version: String(version),
    power,
    isTemplate: machine.isTemplate === true,
    identity,
    ...(mark === undefined ? {} : { mark }),
    shape: readShape(machine, names),
    disks: disksOf(state, machine, names),
    networks: cards.map(({ slot, options: { macAddress } }) => ({
      ...nameOf(names.networks, slot),
      slot,
      ...(macAddress === undefined ? {} : { macAddress }),
    })),
    ...(lock === undefined ? {} : { lock: judgedLock(state, machine, lock) }),
    pending: pendingOf(machine),
    volumes: volumesOf(state, machine, names),
    hasSnapshots: false,
    ...(power === "Running" && started !== undefined ? { uptimeSeconds } : {}),
    ...(guarded === undefined
      ? {}
      : { highAvailability: { requested: guarded.requested, detail: "watched over" } }),
  };
}

function nameOf(slots: Names["disks"], slot: string): { name?: string } {
  const name = nameIn(slots ?? {}, slot);
  return name === undefined ? {} : { name };
}

function disksOf({ volumes }: ModelState, { disks }: ModelMachine, names: Names): Machine["disks"] {
  return disks.map(({ slot, volume }) => {
    const { storage = "", sizeBytes = 0 } = volumes.get(volume) ?? {};
    return { ...nameOf(names.disks, slot), slot, volume, storage, sizeBytes, bus: busOf(slot) };
  });
}

function volumesOf(state: ModelState, machine: ModelMachine, names: Names): SeenVolume[] {
  const of = (id: string): Pick<SeenVolume, "id" | "storage" | "sizeBytes" | "isOwn"> => {
    const { storage = "", sizeBytes = 0, owner } = state.volumes.get(id) ?? {};
    return { id, storage, sizeBytes, isOwn: owner === machine.id };
  };
  const attached = machine.disks.map(({ slot, volume }): SeenVolume => {
    const { name: disk } = nameOf(names.disks, slot);
    return { ...of(volume), role: "Disk", state: "Attached", ...(disk ? { disk } : {}) };
  });
  const others = machine.others.map(({ volume, role }): SeenVolume => {
    return { ...of(volume), role, state: role === "Disk" ? "Detached" : "Attached" };
  });
  return [...attached, ...others];
}
