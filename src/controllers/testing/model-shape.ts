import type { Failure, Fitted, Mark, Shape, StampedDisk } from "../../hypervisor/index.ts";
import { removeMark } from "../../hypervisor/index.ts";
import { cloneJson, isJsonObject, jsonEqual } from "../../kernel/json.ts";
import type { ModelMachine, ModelPart } from "./model-state.ts";

/** The shape of a model's VM: how it is kept, read and changed. Parts have slots, names a mark. */

export type Slots = Readonly<Record<string, string>>;

export type Names = Partial<Pick<Mark, "disks" | "networks" | "cdroms" | "pci" | "usb">>;

/** What a running VM takes over only when it starts again. */
const atNextStart = ["cpu.cores", "cpu.sockets", "cpu.model", "machineType"];

export function isForNextStart(path: string): boolean {
  return atNextStart.includes(path);
}

/** The paths whose value is another than the one that the VM was started with. */
export function pendingOf({ power, started, shape }: ModelMachine): string[] {
  if (power !== "Running" || started === undefined) return [];
  return atNextStart.filter((path) => !jsonEqual(at(shape, path), at(started.shape, path)));
}

function at(shape: Shape, path: string): unknown {
  let value: unknown = shape;
  for (const key of path.split(".")) value = isJsonObject(value) ? value[key] : undefined;
  return value ?? null;
}

/** As it would be seen once applied: the firmware keeps its variables, and the mark is no note. */
export function fitShape(shape: Shape): Fitted {
  const { notes, firmware } = shape;
  const fitted = {
    ...shape,
    ...(notes === undefined ? {} : { notes: removeMark(notes) }),
    ...(firmware?.type === "UEFI" ? { firmware: { ...firmware, keepsVariables: true } } : {}),
  };
  return { shape: fitted, refusals: [] };
}

export function readShape(machine: ModelMachine, names: Names): Shape {
  const { shape, disks, cards, drives, pci, usb, boot, guarded } = machine;
  const { cloudInit, firmware, ...rest } = shape;
  const every = { ...names.disks, ...names.networks, ...names.cdroms };
  const ordered = boot.flatMap((slot) => nameIn(every, slot) ?? []);
  const { requested: _, ...highAvailability } = guarded ?? { requested: "", enabled: false };
  const { passwordHash: __, ...readable } = cloudInit ?? {};
  const disksWithBus = disks.map(({ slot, options }) => {
    return { slot, options: { bus: busOf(slot), ...options } };
  });
  return {
    ...rest,
    ...(cloudInit === undefined ? {} : { cloudInit: readable }),
    ...(firmware === undefined ? {} : { firmware: readFirmware(machine) }),
    disks: named(disksWithBus, names.disks),
    networks: named(cards, names.networks),
    cdroms: named(drives, names.cdroms),
    pci: named(pci, names.pci),
    usb: named(usb, names.usb),
    bootOrder: ordered,
    highAvailability,
  };
}

/** What needs a volume is only so once the volume is there. */
function readFirmware({ shape, others }: ModelMachine): NonNullable<Shape["firmware"]> {
  const { storage: _, tpm, keepsVariables: __, ...rest } = shape.firmware ?? {};
  const has = (role: string): boolean => others.some((other) => other.role === role);
  return {
    ...rest,
    ...(tpm === undefined ? {} : { tpm: has("TPM") ? tpm : "None" }),
    ...(rest.type === "UEFI" ? { keepsVariables: has("Firmware") } : {}),
  };
}

function named<Options>(
  parts: readonly { readonly slot: string; readonly options: Options }[],
  slots: Slots = {},
): (Options & { name: string })[] {
  return parts.flatMap(({ slot, options }) => {
    const name = nameIn(slots, slot);
    return name === undefined ? [] : [{ name, ...options }];
  });
}

export function nameIn(slots: Slots, slot: string): string | undefined {
  return Object.keys(slots).find((name) => slots[name] === slot);
}

type Bus = NonNullable<StampedDisk["bus"]>;

/** A slot for a disk tells its bus. */
export function busOf(slot: string): Bus {
  const bus = (["virtio", "sata", "ide", "nvme"] as const).find((one) => slot.startsWith(one));
  return bus ?? "scsi";
}

/**
 * Slots for names that have none yet. A name whose slot is empty gets another one where it should
 * have another bus.
 */
export function assignSlots(
  known: Slots,
  wanted: readonly StampedDisk[],
  { prefix, used }: { readonly prefix: string; readonly used: readonly { slot: string }[] },
): Slots {
  const slots: Record<string, string> = { ...known };
  const isUsed = (slot: string): boolean => used.some((part) => part.slot === slot);
  for (const { name, slot, bus } of wanted) {
    const has = slots[name];
    const isMoved = has !== undefined && bus !== undefined && busOf(has) !== bus && !isUsed(has);
    if (slot !== undefined) slots[name] = slot;
    else if (has === undefined || isMoved) {
      const isFree = (candidate: string): boolean => {
        return !isUsed(candidate) && nameIn(slots, candidate) === undefined;
      };
      slots[name] = freeSlot(bus ?? prefix, isFree);
    }
  }
  return slots;
}

function freeSlot(prefix: string, isFree: (slot: string) => boolean): string {
  for (let number = 0; ; number += 1) {
    const slot = `${prefix}-${number}`;
    if (isFree(slot)) return slot;
  }
}

/** Changes what is said and nothing else. Its names must be in the mark. */
export function writeShape(machine: ModelMachine, said: Shape, names: Names): Failure | undefined {
  const plain = cloneJson(said);
  const { disks, networks, cdroms, pci, usb, bootOrder, highAvailability: _, ...rest } = plain;
  const unknown = unstamped(plain, names);
  if (unknown !== undefined) return unknown;
  machine.shape = merged(machine.shape, rest);
  machine.cards = changedParts(machine.cards, networks, names.networks).map((card) => {
    const macAddress = card.options.macAddress ?? macOf(machine.id, card.slot);
    return { ...card, options: { ...card.options, macAddress } };
  });
  machine.drives = changedParts(machine.drives, cdroms, names.cdroms);
  machine.pci = changedParts(machine.pci, pci, names.pci);
  machine.usb = changedParts(machine.usb, usb, names.usb);
  for (const { name, bus: __, ...options } of disks ?? []) {
    const disk = machine.disks.find(({ slot }) => slot === names.disks?.[name]);
    if (disk !== undefined) disk.options = { ...disk.options, ...options };
  }
  if (bootOrder !== undefined) machine.boot = slotsOf(bootOrder, names);
  return undefined;
}

export function slotsOf(bootOrder: readonly string[], names: Names): string[] {
  const every = { ...names.disks, ...names.networks, ...names.cdroms };
  return bootOrder.flatMap((name) => every[name] ?? []);
}

function unstamped(shape: Shape, names: Names): Failure | undefined {
  for (const part of ["networks", "cdroms", "pci", "usb"] as const) {
    const missing = shape[part]?.find(({ name }) => names[part]?.[name] === undefined);
    if (missing !== undefined) return notStamped(missing.name);
  }
  return undefined;
}

export function notStamped(name: string): Failure {
  return { category: "ConfigurationError", message: `The mark has no slot for ${name}.` };
}

function changedParts<Part extends { readonly name: string }>(
  parts: readonly ModelPart<Part>[],
  said: readonly Part[] = [],
  slots: Slots = {},
): ModelPart<Part>[] {
  const all = new Map(parts.map((part) => [part.slot, part]));
  for (const { name, ...options } of said) {
    const slot = slots[name] ?? "";
    all.set(slot, { slot, options: { ...all.get(slot)?.options, ...options } });
  }
  return [...all.values()];
}

/** The same for the same VM and slot, and another for every other. */
export function macOf(id: string, slot: string): string {
  const digits = Buffer.from(`${id}${slot.replace(/\D+/, "")}`).toString("hex");
  const last = digits.padStart(10, "0").slice(-10);
  return `02:${last.match(/../g)?.join(":") ?? ""}`;
}

/** Objects field by field; a list, and a seed, only as a whole. */
function merged<T extends object>(base: T, said: T): T {
  const result = { ...base, ...said };
  for (const key of Object.keys(said)) {
    const [old, value]: unknown[] = [Reflect.get(base, key), Reflect.get(said, key)];
    if (key === "seed" || !isJsonObject(value) || !isJsonObject(old)) continue;
    Reflect.set(result, key, merged(old, value));
  }
  return result;
}
