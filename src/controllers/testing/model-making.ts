import { releasedMark } from "../../hypervisor/index.ts";
import type {
  Begun,
  ClaimedMachine,
  ClearHusk,
  Clone,
  Configure,
  CreateShell,
  Destroy,
  Failure,
  Lock,
  Mark,
  Operation,
  Regroup,
  Stamp,
  Unlock,
} from "../../hypervisor/index.ts";
import { cloneJson, jsonEqual } from "../../kernel/json.ts";
import { mustStay, stays, whileLocked } from "./model-disks.ts";
import { disagreement, isOurClone, seenOf } from "./model-identity.ts";
import { assignSlots, macOf, type Names, writeShape } from "./model-shape.ts";
import { notOurs, type Owned, standing, unchanged } from "./model-standing.ts";
import {
  allocate,
  changed,
  done,
  gib,
  type ModelMachine,
  type ModelState,
  type ModelTools,
  refused,
} from "./model-state.ts";

/** How VMs of a model come, are marked and changed as a whole, and go. */

export function create(tools: ModelTools, { claim, node, shape, pool }: CreateShell): Begun {
  const { machines } = tools.state;
  const { externalId: id } = claim;
  if (machines.has(id)) return refused("IdentityConflict", `There is a VM ${id}.`);
  const names = assignAll({}, { disks: [], networks: [], ...shape }, emptyMachine(claim, node));
  const machine = { ...emptyMachine(claim, node), ...(pool === undefined ? {} : { pool }) };
  machines.set(id, machine);
  const begun = tools.task({
    does: "Create",
    id,
    effect: () => {
      delete machine.lock;
      delete machine.husk;
      machine.mark = markFor(claim, names);
      writeShape(machine, shape, names);
      machine.version += 1;
    },
    onFailed: () => void machines.delete(id),
  });
  machine.lock = { kind: "Create", detail: "create", state: "Held", task: begun.task };
  return begun;
}

/** Reserved by us, and nothing is written in it. */
function emptyMachine({ externalId, identity }: ClaimedMachine, node: string): ModelMachine {
  return {
    id: externalId,
    node,
    identity,
    husk: "ours",
    shape: {},
    disks: [],
    cards: [],
    drives: [],
    pci: [],
    usb: [],
    boot: [],
    others: [],
    power: "Stopped",
    version: 1,
  };
}

function markFor(claim: ClaimedMachine, names: Names): Mark {
  const { externalId, identity, installation, owner } = claim;
  const { namespace, name } = owner;
  return {
    state: "Owned",
    installation,
    owner: { namespace, name },
    identity,
    externalId,
    disks: {},
    networks: {},
    ...names,
  };
}

function assignAll(
  known: Names,
  wanted: Pick<Stamp, "disks" | "networks" | "cdroms" | "pci" | "usb">,
  machine: ModelMachine,
): Names {
  const { disks, cards, drives, pci, usb } = machine;
  const rare = {
    cdroms: assignSlots(known.cdroms ?? {}, wanted.cdroms ?? [], { prefix: "cd", used: drives }),
    pci: assignSlots(known.pci ?? {}, wanted.pci ?? [], { prefix: "pci", used: pci }),
    usb: assignSlots(known.usb ?? {}, wanted.usb ?? [], { prefix: "usb", used: usb }),
  };
  const some = Object.entries(rare).filter(([, slots]) => Object.keys(slots).length > 0);
  return {
    disks: assignSlots(known.disks ?? {}, wanted.disks, { prefix: "scsi", used: disks }),
    networks: assignSlots(known.networks ?? {}, wanted.networks, { prefix: "net", used: cards }),
    ...Object.fromEntries(some),
  };
}

/** A copy has volumes, addresses and an identity of its own, and a mark that is not. */
export function clone(tools: ModelTools, operation: Clone): Begun {
  const { claim, node, source: from, name, storage } = operation;
  const { state } = tools;
  const { externalId: id } = claim;
  const refusal = cannotClone(state, operation);
  if (refusal !== undefined) return { outcome: "refused", failure: refusal };
  if (state.machines.has(id)) return refused("IdentityConflict", `There is a VM ${id}.`);
  const machine = emptyMachine({ ...claim, identity: `clone-${id}` }, node);
  state.machines.set(id, machine);
  const begun = tools.task({
    does: "Clone",
    id,
    from,
    effect: () => {
      const source = state.machines.get(from);
      if (source === undefined) throw new Error(`there is no VM ${from}`);
      delete machine.lock;
      delete machine.husk;
      copyInto(state, { machine, source, ...(storage === undefined ? {} : { storage }) });
      if (name !== undefined) machine.shape = { ...machine.shape, name };
      machine.version += 1;
    },
    onFailed: () => void state.machines.delete(id),
  });
  machine.clonedBy = begun.task;
  machine.lock = { kind: "Clone", detail: "clone", state: "Held", task: begun.task };
  return begun;
}

/** Why a VM cannot be cloned; undefined if it can. */
export function cannotClone(
  { machines }: ModelState,
  { source, mode, snapshot }: Pick<Clone, "source" | "mode" | "snapshot">,
): Failure | undefined {
  const machine = machines.get(source);
  if (machine === undefined) {
    return { category: "ImageNotFound", message: `There is no VM ${source}.` };
  }
  if (snapshot !== undefined) {
    return { category: "ImageNotFound", message: `VM ${source} has no snapshot ${snapshot}.` };
  }
  if (mode === "Full" || machine.isTemplate === true) return undefined;
  return { category: "ConfigurationError", message: `VM ${source} is no template.` };
}

function copyInto(
  state: ModelState,
  copying: { machine: ModelMachine; source: ModelMachine; storage?: string },
): void {
  const { machine, source } = copying;
  const { mark, shape, drives, boot, cards } = cloneJson(source);
  machine.shape = shape;
  machine.drives = drives;
  machine.boot = boot;
  machine.cards = cards.map(({ slot, options }) => {
    return { slot, options: { ...options, macAddress: macOf(machine.id, slot) } };
  });
  if (mark !== undefined) machine.mark = mark;
  for (const { slot, volume, options } of source.disks) {
    const original = state.volumes.get(volume);
    if (original === undefined) continue;
    const storage = copying.storage ?? original.storage;
    const copy = allocate(state, machine, { ...original, storage });
    machine.disks.push({ slot, volume: copy.id, options });
  }
}

export function configure(tools: ModelTools, operation: Configure): Begun {
  const { shape } = operation;
  const found = standing(tools.state, operation);
  if ("outcome" in found) return found;
  const { machine, mark } = found;
  const hasModule = machine.others.some(({ role }) => role === "TPM");
  if (shape.firmware?.tpm === "None" && hasModule) {
    return refused("ReplacementRequired", "The state of the TPM would be lost.");
  }
  const wanted = cloneJson(machine);
  const refusal = writeShape(wanted, shape, mark);
  if (refusal !== undefined) return { outcome: "refused", failure: refusal };
  const roles = shape.firmware === undefined ? [] : missingRoles(wanted);
  if (roles.length === 0) {
    if (!jsonEqual(wanted, machine))
      Object.assign(machine, wanted, { version: wanted.version + 1 });
    return done;
  }
  return whileLocked(tools, machine, {
    does: "Configure",
    effect: () => {
      writeShape(machine, shape, mark);
      for (const role of roles) addSmallVolume(tools.state, machine, role);
      machine.version += 1;
    },
  });
}

/** The volumes that the firmware of a VM needs and does not have. */
function missingRoles({ shape, others }: ModelMachine): ("Firmware" | "TPM")[] {
  const { type, tpm = "None" } = shape.firmware ?? {};
  const needed = [
    ...(type === "UEFI" ? ["Firmware" as const] : []),
    ...(tpm === "None" ? [] : ["TPM" as const]),
  ];
  return needed.filter((role) => others.every((other) => other.role !== role));
}

function addSmallVolume(state: ModelState, machine: ModelMachine, role: "Firmware" | "TPM"): void {
  const boots = machine.disks.find(({ slot }) => slot === machine.boot[0]);
  const beside = state.volumes.get(boots?.volume ?? "")?.storage ?? state.storages[0]?.name ?? "";
  const storage = machine.shape.firmware?.storage ?? beside;
  const { id: volume } = allocate(state, machine, { storage, sizeBytes: gib / 256 });
  machine.others.push({ volume, role });
}

export function stamp(tools: ModelTools, operation: Stamp): Begun {
  const found = standingForMark(tools.state, operation);
  if ("outcome" in found) return found;
  const { machine, mark } = found;
  const names = assignAll(mark, wantedOf(operation, machine), machine);
  const written = { ...mark, ...names };
  if (JSON.stringify(machine.mark) === JSON.stringify(written)) return done;
  machine.mark = written;
  machine.identity = operation.claim.identity;
  machine.version += 1;
  return done;
}

const adoptable: ReadonlySet<string> = new Set(["Stranger", "MarkLost", "Released"]);

/** Ours already; or to be adopted, which changes no identity; or a clone of our own task. */
function standingForMark(state: ModelState, operation: Stamp): Owned | Begun {
  const { claim, at } = operation;
  const machine = state.machines.get(claim.externalId);
  const reason = machine && disagreement(machine, claim);
  if (machine?.husk !== undefined || reason === undefined || machine === undefined) {
    return standing(state, operation);
  }
  const slots = slotsToKeep(state, operation, { machine, reason });
  if (slots === undefined) return notOurs(claim, reason);
  return unchanged(machine, at) ?? { machine, mark: markFor(claim, slots) };
}

/** The slots that an earlier mark of an adopted VM gave, none of a clone; undefined: neither. */
function slotsToKeep(
  state: ModelState,
  { claim, adopt = false, cloned }: Stamp,
  { machine, reason }: { readonly machine: ModelMachine; readonly reason: string },
): Names | undefined {
  if (cloned !== undefined) return isOurClone(state, machine, cloned.from) ? {} : undefined;
  const isSame = machine.identity === claim.identity;
  if (!adopt || !adoptable.has(reason) || !isSame) return undefined;
  const { disks = {}, networks = {} } = machine.mark ?? {};
  return { disks, networks };
}

/** The names of a clone go to its parts in their order, and the first disk's to what it boots. */
function wantedOf(operation: Stamp, machine: ModelMachine): Stamp {
  const { cloned, networks } = operation;
  const disks = operation.disks.map(({ boots = false, ...disk }) => {
    const slot = boots ? (machine.boot[0] ?? machine.disks[0]?.slot) : undefined;
    return slot === undefined ? disk : { ...disk, slot };
  });
  if (cloned === undefined) return { ...operation, disks };
  const cards = machine.cards.map(({ slot }) => slot);
  const placed = networks.map((card) => {
    const slot = card.slot ?? cards.shift();
    return slot === undefined ? card : { ...card, slot };
  });
  return { ...operation, disks, networks: placed };
}

export function release({ state }: ModelTools, operation: Operation & { kind: "release" }): Begun {
  const found = standing(state, operation);
  if ("outcome" in found) return found;
  const { machine, mark } = found;
  machine.mark = releasedMark(mark);
  machine.version += 1;
  return done;
}

export function regroup({ state }: ModelTools, operation: Regroup): Begun {
  const found = standing(state, operation);
  if ("outcome" in found) return found;
  const { machine } = found;
  if (operation.pool === undefined) delete machine.pool;
  else machine.pool = operation.pool;
  return done;
}

/** With every volume that bears its id and that it refers to: all of them must be accounted for. */
export function destroy(tools: ModelTools, operation: Destroy): Begun {
  const { claim } = operation;
  const { volumes, machines } = tools.state;
  const found = standing(tools.state, operation);
  if ("outcome" in found) return found;
  const { machine } = found;
  if (machine.power === "Running") return refused("DependencyNotReady", "It still runs.");
  const held = [...machine.disks, ...machine.others].map(({ volume }) => volume);
  const own = held.filter((volume) => volumes.get(volume)?.owner === machine.id);
  if (own.some((volume) => !operation.volumes.includes(volume))) return changed("another volume");
  const kept = own.find((volume) => mustStay(claim, volume));
  if (kept !== undefined) return stays(kept);
  const begun = tools.task({
    does: "Destroy",
    id: machine.id,
    effect: () => {
      for (const volume of own) volumes.delete(volume);
      machines.delete(machine.id);
    },
    onFailed: () => void delete machine.lock,
  });
  machine.lock = { kind: "Destroy", detail: "destroy", state: "Held", task: begun.task };
  return begun;
}

export function unlock({ state }: ModelTools, { claim, at, lock }: Unlock): Begun {
  const seen = seenOf(state, claim);
  const machine = state.machines.get(claim.externalId);
  if (machine === undefined || seen.at !== "ours") return changed(`it is ${seen.at} now`);
  if (seen.machine.lock === undefined) return done;
  const isSame = seen.machine.lock.detail === lock && seen.machine.version === at.version;
  if (!isSame) return changed("another lock or version");
  const begun = heldOr(seen.machine.lock);
  if (begun !== undefined) return begun;
  delete machine.lock;
  machine.version += 1;
  return done;
}

export function clearHusk({ state }: ModelTools, { claim }: ClearHusk): Begun {
  const seen = seenOf(state, claim);
  if (seen.at === "absent") return done;
  if (seen.at !== "opaque") return changed(`it is ${seen.at} now`);
  const begun = heldOr(seen.lock);
  if (begun !== undefined) return begun;
  state.machines.delete(claim.externalId);
  return done;
}

function heldOr({ state, detail }: Lock): Begun | undefined {
  return state === "Dead" ? undefined : { outcome: "blocked", waitsFor: detail };
}
