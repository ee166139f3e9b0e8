import { createHash } from "node:crypto";
import type { VirtualMachine, VirtualMachineStatus } from "../../api/index.ts";
import type { Failure, PastTask } from "../../hypervisor/index.ts";
import { annotationToken } from "../operations/index.ts";
import type { Step } from "./steps.ts";
import { specField, undoableFields, undoingOf } from "./undoing.ts";

export type RecentStep = NonNullable<VirtualMachineStatus["recentSteps"]>[number];

/** As often as the same may be put right within the window, without a change of the spec. */
const timesMax = 3;
const windowMs = 10 * 60_000;
/** All power steps, and more fields than anybody changes at the same time. */
const keptMax = 16;
const digits = 16;
const namedMax = 5;

/** What somebody keeps undoing, and since when. */
export interface Flap {
  readonly step: string;
  readonly fields: readonly string[];
  readonly sinceMs: number;
}

/** What was changed lately, with this step, which is about to be sent. */
export function withRecent(
  recent: readonly RecentStep[],
  { vm, step, at }: { readonly vm: VirtualMachine; readonly step: Step; readonly at: string },
): readonly RecentStep[] {
  const declaration = declarationDigest(vm);
  const name = countedName(step.name);
  const fields = undoableFields(step).slice(0, keptMax);
  // The VM is created again: what follows belongs to that, and corrects nothing.
  const kept = fields.includes("onMissing") ? [] : recent;
  const isOther = (one: RecentStep): boolean => one.step !== name || !fields.includes(one.field);
  const counted = fields.map((field): RecentStep => {
    const old = recent.find((one) => one.step === name && one.field === field);
    const times = old?.declaration === declaration ? old.times : [];
    return { step: name, field, times: [...times, at].slice(-timesMax), declaration };
  });
  return [...kept.filter(isOther), ...counted].slice(-keptMax);
}

/** A step that had no effect does not count: it failed, was blocked, or the guest ignored it. */
export function withoutStep(
  recent: readonly RecentStep[],
  { step, since }: { readonly step: string; readonly since: string },
): readonly RecentStep[] {
  const name = countedName(step);
  return recent.flatMap((one) => {
    if (one.step !== name || !one.times.includes(since)) return [one];
    const times = one.times.filter((at) => at !== since);
    return times.length === 0 ? [] : [{ ...one, times }];
  });
}

/**
 * What this step puts right and somebody keeps undoing: it ended well each time, and is needed once
 * more under the same declaration. Undefined where that did not happen. Pure.
 */
export function flapOf(vm: VirtualMachine, step: Step, nowMs: number): Flap | undefined {
  const declaration = declarationDigest(vm);
  const found = (vm.status?.recentSteps ?? [])
    .filter((past) => past.declaration === declaration && isFor(step, past))
    .filter(({ times }) =>
      isOften(
        times.map((at) => Date.parse(at)),
        nowMs,
      ),
    );
  // What it is switched off for comes first: that it is switched off follows from it.
  const needed = found.filter(({ step: past }) => past !== countedName(step.name));
  return flapAmong(needed) ?? flapAmong(found);
}

/**
 * The window is across the steps themselves: how soon the last of them was undone depends on the
 * other side. A clock that was set back must not make old steps count for ever.
 */
function isOften(timesMs: readonly number[], nowMs: number): boolean {
  if (timesMs.length < timesMax) return false;
  const lastMs = Math.max(...timesMs);
  const isDense = lastMs - Math.min(...timesMs) < windowMs;
  return isDense && Math.abs(nowMs - lastMs) < windowMs;
}

/** A conflict that was reported stays one until the declaration changes or a person asks again. */
export function reportedFlap(vm: VirtualMachine): Flap | undefined {
  const declaration = declarationDigest(vm);
  const isReported = (one: RecentStep): boolean => {
    return one.conflict === true && one.declaration === declaration;
  };
  return flapAmong((vm.status?.recentSteps ?? []).filter(isReported));
}

export function withConflict(recent: readonly RecentStep[], flap: Flap): readonly RecentStep[] {
  return recent.map((one) => {
    const isOf = one.step === flap.step && flap.fields.includes(one.field);
    return isOf ? { ...one, conflict: true } : one;
  });
}

/** What a status keeps of it. Once all is as declared, the other side has stopped. */
export function recentOf(
  recent: readonly RecentStep[] | undefined,
  isAsDeclared: boolean,
): RecentStep[] | undefined {
  if (recent === undefined || !isAsDeclared) return recent && [...recent];
  return recent.map(({ conflict: _over, ...one }) => one);
}

function flapAmong(found: readonly RecentStep[]): Flap | undefined {
  const [first] = found;
  if (first === undefined) return undefined;
  const same = found.filter(({ step }) => step === first.step);
  const times = same.flatMap((one) => one.times.map((at) => Date.parse(at)));
  return {
    step: first.step,
    fields: same.map(({ field }) => field),
    sinceMs: Math.min(...times),
  };
}

/** Whether a step puts the same right; a VM is also not switched off for what is changed back. */
function isFor(step: Step, past: RecentStep): boolean {
  if (past.step === countedName(step.name)) return undoableFields(step).includes(past.field);
  const needed = step.fields?.map(specField) ?? [];
  return needed.some((field) => field === past.field || field.startsWith(`${past.field}.`));
}

/** Somebody who pauses a VM and somebody who stops it undo the same. */
function countedName(name: string): string {
  return name === "Resume" ? "Start" : name;
}

/**
 * The conflict, with who the other is; undefined where the hypervisor can tell that nobody else
 * worked on the VM, because then the guest does it by itself. `past` is undefined where it cannot.
 */
export function conflictOf(
  vm: VirtualMachine,
  flap: Flap,
  past: readonly PastTask[] | undefined,
): Failure | undefined {
  const undoing = past?.filter((task) => isUndoing(vm, flap, task)) ?? [];
  if (undoing.length === 0 && mayBeGuest(flap, past)) return undefined;
  const { name = "", namespace = "" } = vm.metadata;
  const users = [...new Set(undoing.map(({ user }) => user))].join(", ");
  const isKnown = users !== "";
  const who = isKnown ? `The user ${users} of the hypervisor` : "Somebody";
  const unknown = isKnown ? "" : ` ${unknownText(flap, past)}`;
  return {
    category: "ConflictingController",
    message:
      `${who} keeps ${whatText(flap)}: Berth did the same ${timesMax} times within 10 minutes ` +
      `(${flap.step}), and it is needed again.${unknown}`,
    remedy:
      "Find out who else manages this VM, and let one of the two do it. " +
      `Then edit the declaration, or: berth retry vm/${name} -n ${namespace}.`,
  };
}

/** The hypervisor lists who works on it, and the guest can have done it without anybody. */
function mayBeGuest({ step }: Flap, past: readonly PastTask[] | undefined): boolean {
  return past !== undefined && undoingOf(step)?.byGuest === true;
}

function whatText({ step, fields }: Flap): string {
  if (fields.includes("onMissing")) return "deleting this VM";
  if (fields.includes("powerState")) return "changing the power state of this VM back";
  const more = fields.length > namedMax ? ` and ${fields.length - namedMax} more` : "";
  const named = fields.slice(0, namedMax).map((field) => `spec.${field}`);
  const verb = step === "Attach" ? "detaching" : "changing";
  return `${verb} ${named.join(", ")}${more} of this VM${step === "Attach" ? "" : " back"}`;
}

function unknownText({ step }: Flap, past: readonly PastTask[] | undefined): string {
  if (past === undefined) return "This hypervisor does not record who changed it.";
  return undoingOf(step)?.isListed === "Maybe"
    ? "The hypervisor does not record who changed it."
    : "The task list of the hypervisor shows no other user.";
}

/** Work of our own credentials counts too, if this object did not ask for any such step. */
function isUndoing({ status }: VirtualMachine, { step, sinceMs }: Flap, task: PastTask): boolean {
  if (undoingOf(step)?.by.includes(task.does) !== true) return false;
  if (!task.isOurs) return true;
  const own = status?.recentSteps ?? [];
  // What this object did before, or may have forgotten, is not blamed on anybody.
  const isKnown = own.length < keptMax && task.sinceMs > sinceMs;
  if (undoingOf(step)?.byGuest !== true || !isKnown) return false;
  return !own.some((past) => past.field === "powerState" && isOpposite(past.step, step));
}

/** Whether one of two power steps undoes the other. */
function isOpposite(left: string, right: string): boolean {
  return (left === "Start") !== (right === "Start");
}

/** All that a person can change: an edit, a requested restart, another try. */
function declarationDigest({ metadata }: VirtualMachine): string {
  const { generation = 0, deletionTimestamp = "" } = metadata;
  const asked = [annotationToken(metadata, "reconcileAt"), annotationToken(metadata, "restartAt")];
  const said = JSON.stringify([generation, deletionTimestamp, ...asked]);
  return createHash("sha256").update(said).digest("hex").slice(0, digits);
}
