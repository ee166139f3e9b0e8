import type { Bus, Failure } from "../../../hypervisor/index.ts";
import type { Slots } from "./shape.ts";
import { busOf, freeDeviceSlot, freeDiskSlot, freeNetworkSlot } from "./slots.ts";

/** A name that needs a place. One that has its place already says so with `slot`. */
interface WantedPart {
  readonly name: string;
  readonly bus?: Bus;
  readonly slot?: string;
}

export interface Wanted {
  readonly disks: readonly WantedPart[];
  readonly networks: readonly WantedPart[];
  readonly cdroms?: readonly WantedPart[];
  readonly pci?: readonly WantedPart[];
  readonly usb?: readonly WantedPart[];
  /** Slots that hold something which nobody named. */
  readonly taken?: readonly string[];
}

/**
 * Gives every name a slot. Known names keep theirs: a disk is found by its name through the mark,
 * whatever the order of the list. Only a name whose slot is empty moves, if it wants another bus.
 */
export function assignSlots(known: Slots, wanted: Wanted): Slots | Failure {
  const held = new Set(wanted.taken ?? []);
  const used = new Set([...held, ...kinds.flatMap((kind) => Object.values(known[kind] ?? {}))]);
  const slots: Partial<Record<Kind, Record<string, string>>> = {};
  for (const kind of kinds) {
    const assigned = assign(kind);
    if (typeof assigned === "string") return noSlot(kind, assigned);
    if (isPlain(kind) || Object.keys(assigned).length > 0) slots[kind] = assigned;
  }
  return { ...slots, disks: slots.disks ?? {}, networks: slots.networks ?? {} };

  function assign(kind: Kind): Record<string, string> | string {
    const assigned: Record<string, string> = { ...known[kind] };
    for (const part of wanted[kind] ?? []) {
      const chosen = part.slot ?? kept(assigned[part.name], part.bus) ?? free[kind](part, used);
      if (chosen === undefined) return part.name;
      assigned[part.name] = chosen;
      used.add(chosen);
    }
    return assigned;
  }

  function kept(slot: string | undefined, bus: Bus | undefined): string | undefined {
    const isOther = slot !== undefined && bus !== undefined && busOf(slot) !== bus;
    return isOther && wanted.taken !== undefined && !held.has(slot) ? undefined : slot;
  }
}

const kinds = ["disks", "cdroms", "networks", "pci", "usb"] as const;

type Kind = (typeof kinds)[number];

type Free = (part: WantedPart, used: ReadonlySet<string>) => string | undefined;

const free: Readonly<Record<Kind, Free>> = {
  disks: ({ bus = "scsi" }, used) => freeDiskSlot(bus, used),
  cdroms: ({ bus = "sata" }, used) => freeDiskSlot(bus, used),
  networks: (_, used) => freeNetworkSlot(used),
  pci: (_, used) => freeDeviceSlot("hostpci", used),
  usb: (_, used) => freeDeviceSlot("usb", used),
};

/** Every mark tells of disks and networks; of the others only where there are any. */
function isPlain(kind: Kind): boolean {
  return kind === "disks" || kind === "networks";
}

const words: Readonly<Record<Kind, string>> = {
  disks: "disk",
  cdroms: "drive",
  networks: "network",
  pci: "PCI device",
  usb: "USB device",
};

function noSlot(kind: Kind, name: string): Failure {
  const message = `there is no room for the ${words[kind]} ${name} on its bus`;
  return { category: "ConfigurationError", message };
}
