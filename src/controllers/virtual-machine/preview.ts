import type { ClaimSpec, VirtualMachine } from "../../api/index.ts";
import { shapeDifferences } from "../../hypervisor/index.ts";
import type {
  Failure,
  HypervisorDriver,
  Machine,
  Mark,
  NewDisk,
  Shape,
} from "../../hypervisor/index.ts";
import { combined, defined } from "../failures/index.ts";
import type { Declaration } from "./declaration.ts";
import { desireMachine, type Desired } from "./desired.ts";
import { fieldsChangedSince, createdFrom } from "./created-from.ts";
import type { Declared } from "./next.ts";
import { planVm } from "./plan.ts";
import { isEverDeclared } from "./plan-claim.ts";
import {
  changeText,
  fieldChange,
  planOfChanges,
  powerChanges,
  sizeChanges,
  type Plan,
  type Planned,
} from "./plan-changes.ts";
import { bytesOf } from "./quantities.ts";

/** What of a driver can be asked without a hypervisor. */
export type Dialect = Pick<HypervisorDriver, "fit" | "changeOf">;

export interface PreviewInput {
  /** As it is declared now. What of that was applied is what the machine was seen to be. */
  readonly before: Declaration;
  readonly after: Declaration;
  readonly claim: ClaimSpec;
  readonly dialect: Dialect;
  readonly nowMs: number;
}

export interface Preview {
  readonly plan: Plan;
  /** Why nothing of it would be done. */
  readonly refusal?: Failure;
}

/**
 * What an edit would do to a machine that stands: field by field, with what each costs, decided by
 * the same plan that the controller follows. Pure: what was seen comes from the status and the
 * Claim, and of fields that no status shows, from the declaration that was applied.
 */
export function previewVm(input: PreviewInput): Preview {
  const { before, after, dialect } = input;
  const claim = { ...input.claim, createdFrom: input.claim.createdFrom ?? createdFrom(before.vm) };
  const desired = desireMachine(after);
  if (!desired.ok) return { plan: planOfChanges(claim, []), refusal: desired.failure };
  const { shape, refusals } = dialect.fit(desired.value.shape);
  const wanted = { ...desired.value, shape };
  // What the guest was told is judged by what the machine was made from, and shown nowhere.
  const seen = { ...shapeOf(before, dialect), cloudInit: shape.cloudInit };
  const machine = seenMachine(before.vm, claim, defined<Shape>(seen));
  const plan = planOfChanges(machine, [
    ...madeAnew(before.vm, after.vm, claim),
    ...changesOf(after.vm, wanted, { machine, dialect, claim }),
  ]);
  const [first] = refusals;
  const refusal =
    first === undefined ? planRefusal({ ...input, claim }, wanted, machine) : combined(refusals);
  return refusal === undefined ? { plan } : { plan, refusal };
}

/** Whether a machine that does not stand yet could be had at all, as far as that can be told. */
export function previewNewVm(after: Declaration, dialect: Dialect): Failure | undefined {
  const desired = desireMachine(after);
  if (!desired.ok) return desired.failure;
  const { refusals } = dialect.fit(desired.value.shape);
  return refusals.length === 0 ? undefined : combined(refusals);
}

function shapeOf(declaration: Declaration, dialect: Dialect): Shape {
  const desired = desireMachine(declaration);
  return desired.ok ? dialect.fit(desired.value.shape).shape : {};
}

/** The machine as the status and the Claim tell of it. */
function seenMachine({ status }: VirtualMachine, claim: ClaimSpec, shape: Shape): Machine {
  const { externalId, node = "", identity, installation, owner } = claim;
  const { disks = [], networks = [], powerState: power = "Unknown" } = status ?? {};
  const slots = (parts: readonly { name: string; device?: string | undefined }[]): Mark["disks"] =>
    Object.fromEntries(parts.map(({ name, device = "" }) => [name, device]));
  return {
    externalId,
    node,
    version: "",
    power,
    isTemplate: false,
    identity,
    mark: {
      state: "Owned",
      installation,
      owner: { namespace: owner.namespace, name: owner.name },
      identity,
      externalId,
      disks: slots(disks),
      networks: slots(networks),
    },
    shape,
    disks: disks.map(({ name, device: slot = "", volume, storage = "", size = 0 }) => {
      return { name, slot, volume, storage, sizeBytes: bytesOf(size), bus: "scsi" };
    }),
    networks: networks.map(({ name, device: slot = "" }) => ({ name, slot })),
    pending: [],
    volumes: [],
    hasSnapshots: false,
  };
}

/** The controller's own plan: if that fails, nothing of the edit is applied. */
function planRefusal(
  { after, claim, dialect, nowMs }: PreviewInput,
  wanted: Desired,
  machine: Machine,
): Failure | undefined {
  const next = planVm({
    declared: declaredOf(after.vm, wanted, claim),
    // What it would write down of this machine is not asked here.
    claim: { ...claim, volumes: [], expectedDisks: namesOf(wanted), state: "Bound" },
    seen: { at: "ours", machine },
    nowMs,
    changeOf: dialect.changeOf,
  });
  return next.do === "fail" ? next.failure : undefined;
}

function namesOf({ disks }: Desired): string[] {
  return disks.map(({ name }) => name).toSorted();
}

function declaredOf(vm: VirtualMachine, desired: Desired, { node = "" }: ClaimSpec): Declared {
  const { spec } = vm;
  const { shutdown, updatePolicy, driftPolicy, onMissing, powerState: power } = spec;
  return {
    isDeleting: false,
    fate: "Retain",
    isProtected: spec.deletionProtection ?? false,
    shape: desired.shape,
    disks: desired.disks,
    createdFrom: createdFrom(vm),
    onDelete: {},
    node,
    power,
    shutdown,
    updatePolicy,
    driftPolicy,
    onMissing,
    wantsRestart: false,
    isEdited: true,
  };
}

const onceOnly = "It counts only until the machine first stood.";
/** User-data may hold what not everybody should read, and so may a password's hash. */
const notShown = "(not shown)";

/** What says something else than when the machine was made: the plan refuses the edit for it. */
function madeAnew(before: VirtualMachine, after: VirtualMachine, claim: ClaimSpec): Planned[] {
  if (!claim.everExisted) return [];
  const made = claim.createdFrom ?? [];
  const now = createdFrom(after);
  const isIn = (list: typeof made, field: string): boolean =>
    list.some((one) => one.field === field);
  // Of what the machine was made from only digests are known; an edit in between hides the rest.
  const isKnown = !fieldsChangedSince(made, createdFrom(before)).includes("spec.source");
  const source = {
    from: isKnown ? changeText(before.spec.source) : notShown,
    to: changeText(after.spec.source),
  };
  return fieldsChangedSince(made, now).map((field): Planned => {
    const hidden = {
      from: isIn(made, field) ? notShown : "nothing",
      to: isIn(now, field) ? notShown : "nothing",
    };
    const texts = field === "spec.source" ? source : hidden;
    return { field, ...texts, effect: "Refused", note: onceOnly };
  });
}

interface Known {
  readonly machine: Machine;
  readonly dialect: Dialect;
  readonly claim: ClaimSpec;
}

/** In the order in which they would be made. */
function changesOf(vm: VirtualMachine, wanted: Desired, known: Known): Planned[] {
  const { machine, dialect } = known;
  const differences = shapeDifferences(wanted.shape, machine.shape)
    // A disk that is new is told by itself.
    .filter(({ path }) => !/^disks\[[^\]]*\]$/.test(path));
  return [
    ...diskChanges(vm, wanted, known),
    ...sizeChanges(wanted, machine),
    ...removedParts(wanted.shape, machine.shape),
    ...differences.map((difference) => {
      return fieldChange(difference, machine, (path) => dialect.changeOf(path, machine));
    }),
    ...powerChanges(vm.spec, machine),
  ];
}

function diskChanges(vm: VirtualMachine, { disks }: Desired, known: Known): Planned[] {
  const declared = new Set(disks.map(({ name }) => name));
  const gone = known.machine.disks.filter(({ name }) => {
    return name !== undefined && !declared.has(name) && isEverDeclared(known.claim, name);
  });
  return [
    ...disks.flatMap((disk) => diskChange(vm, disk, known)),
    ...gone.map(({ name = "", volume }) => goneDisk(vm, name, volume)),
  ];
}

function diskChange(
  { spec }: VirtualMachine,
  { name, storage, sizeBytes }: NewDisk,
  { machine, claim }: Known,
): Planned[] {
  const seen = machine.disks.find((disk) => disk.name === name);
  const field = `spec.disks[${name}]`;
  if (seen === undefined) {
    const isKept = claim.volumes?.some(({ disk }) => disk === name) ?? false;
    const note = isKept ? "The disk that was detached is attached again." : "A disk is made.";
    return [{ field, to: changeText({ storage, sizeBytes }), effect: "Live", note }];
  }
  // A default says where new disks go. Only a disk whose entry names its storage is moved.
  const isPinned = spec.disks?.some((disk) => disk.name === name && disk.storage !== undefined);
  if (seen.storage === storage || isPinned !== true) return [];
  const note = "Its data is copied there, then the old volume goes.";
  return [{ field: `${field}.storage`, from: seen.storage, to: storage, effect: "Live", note }];
}

function goneDisk({ spec }: VirtualMachine, name: string, volume: string): Planned {
  const field = `spec.disks[${name}]`;
  const isAbsent = spec.disks?.some((disk) => disk.name === name && disk.state === "Absent");
  if (isAbsent === true) {
    const note = "state: Absent destroys the disk with its data.";
    return { field, from: volume, to: "destroyed", effect: "DestroysData", note };
  }
  const note = "The disk is kept; the same name attaches it again.";
  return { field, from: volume, to: "detached", effect: "Live", note };
}

const partLists = ["networks", "cdroms", "pci", "usb"] as const;

function* removedParts(wanted: Shape, seen: Shape): Iterable<Planned> {
  for (const list of partLists) {
    const declared = new Set(wanted[list]?.map(({ name }) => name));
    for (const { name } of seen[list] ?? []) {
      if (declared.has(name)) continue;
      yield { field: `spec.${list}[${name}]`, from: "there", to: "taken off", effect: "Live" };
    }
  }
}
