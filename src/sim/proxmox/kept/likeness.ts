import type { GuestBehaviour, GuestFile, MachineState, TaskState, Volume } from "../state.ts";
import type { Likeness } from "./kept-parts.ts";

// A cluster may have tens of thousands of volumes and machines, and each reply looks at all of
// them: hence these comparisons are written out, member by member.

/** A guest's file is replaced, never changed. */
export const fileLikeness: Likeness<GuestFile, undefined> = {
  copyOf: () => undefined,
  isSame: () => true,
};

/** A task that has ended does not change any more. */
export const taskLikeness: Likeness<TaskState, string> = {
  copyOf: (task) => (task.endMs === undefined ? JSON.stringify(task) : ""),
  isSame: (task, copy) => copy === "" || JSON.stringify(task) === copy,
};

export const volumeLikeness: Likeness<Volume, Whole<Volume>> = {
  copyOf: (volume) => ({
    name: volume.name,
    content: volume.content,
    format: volume.format,
    sizeBytes: volume.sizeBytes,
    usedBytes: volume.usedBytes,
    createdMs: volume.createdMs,
    vmid: volume.vmid,
    base: volume.base,
    snapshots: volume.snapshots && [...volume.snapshots],
    data: volume.data,
    sha256: volume.sha256,
    virtualBytes: volume.virtualBytes,
    isCorrupt: volume.isCorrupt,
    isPartial: volume.isPartial,
  }),
  isSame: (volume, copy) => isSameFile(volume, copy) && hasSameContents(volume, copy),
};

function isSameFile(volume: Volume, copy: Whole<Volume>): boolean {
  return (
    volume.name === copy.name &&
    volume.content === copy.content &&
    volume.format === copy.format &&
    volume.sizeBytes === copy.sizeBytes &&
    volume.usedBytes === copy.usedBytes &&
    volume.createdMs === copy.createdMs &&
    volume.vmid === copy.vmid
  );
}

function hasSameContents(volume: Volume, copy: Whole<Volume>): boolean {
  return (
    volume.base === copy.base &&
    areSame(volume.snapshots, copy.snapshots) &&
    volume.data === copy.data &&
    volume.sha256 === copy.sha256 &&
    volume.virtualBytes === copy.virtualBytes &&
    volume.isCorrupt === copy.isCorrupt &&
    volume.isPartial === copy.isPartial
  );
}

export const machineLikeness: Likeness<MachineState, MachineCopy> = {
  copyOf: (machine) => ({
    pid: machine.pid,
    startedMs: machine.startedMs,
    isPaused: machine.isPaused,
    willReboot: machine.willReboot,
    guest: machine.guest && copyBehaviour(machine.guest),
  }),
  isSame: (machine, copy) =>
    machine.pid === copy.pid &&
    machine.startedMs === copy.startedMs &&
    machine.isPaused === copy.isPaused &&
    machine.willReboot === copy.willReboot &&
    isSameBehaviour(machine.guest, copy.guest),
};

/** With every member, be it undefined: a member that is new cannot be forgotten here. */
type Whole<T> = { readonly [Name in keyof T]-?: T[Name] | undefined };

interface MachineCopy extends Omit<Whole<MachineState>, "guest"> {
  readonly guest: BehaviourCopy | undefined;
}

interface BehaviourCopy extends Omit<Whole<GuestBehaviour>, "programs" | "files"> {
  readonly programs: string | undefined;
  readonly files: string | undefined;
}

function copyBehaviour(guest: GuestBehaviour): BehaviourCopy {
  return {
    agent: guest.agent,
    agentAfterMs: guest.agentAfterMs,
    obeysShutdown: guest.obeysShutdown,
    shutdownMs: guest.shutdownMs,
    isFrozen: guest.isFrozen,
    programs: textOf(guest.programs),
    files: textOf(guest.files),
  };
}

function isSameBehaviour(
  guest: GuestBehaviour | undefined,
  copy: BehaviourCopy | undefined,
): boolean {
  if (guest === undefined || copy === undefined) return guest === copy;
  return (
    guest.agent === copy.agent &&
    guest.agentAfterMs === copy.agentAfterMs &&
    guest.obeysShutdown === copy.obeysShutdown &&
    guest.shutdownMs === copy.shutdownMs &&
    guest.isFrozen === copy.isFrozen &&
    textOf(guest.programs) === copy.programs &&
    textOf(guest.files) === copy.files
  );
}

function areSame(
  left: readonly string[] | undefined,
  right: readonly string[] | undefined,
): boolean {
  if (left === undefined || right === undefined) return left === right;
  return textOf(left) === textOf(right);
}

/** Few have any of these, so that writing them out each time costs nothing. */
function textOf(value: object | undefined): string | undefined {
  return value === undefined ? undefined : JSON.stringify(value);
}
