import type { Bus, Failure } from "../../../hypervisor/index.ts";
import type { Slots } from "./shape.ts";
import { freeDiskSlot, freeNetworkSlot } from "./slots.ts";

/** The names that need a place. One that has its place already says so with `slot`. */
export interface Wanted {
  readonly disks: readonly { readonly name: string; readonly bus?: Bus; readonly slot?: string }[];
  readonly networks: readonly { readonly name: string; readonly slot?: string }[];
  /** Slots that hold something which nobody named. */
  readonly taken?: readonly string[];
}

/**
 * Gives every name a slot. Known names keep theirs, for ever: a disk is found by its name through
 * the mark, whatever the order of the list.
 */
export function assignSlots(known: Slots, wanted: Wanted): Slots | Failure {
  const used = new Set([
    ...(wanted.taken ?? []),
    ...Object.values(known.disks),
    ...Object.values(known.networks),
  ]);
  const disks = assign(known.disks, wanted.disks, ({ bus = "scsi" }) => freeDiskSlot(bus, used));
  if (typeof disks === "string") return noSlot(`the disk ${disks}`);
  const networks = assign(known.networks, wanted.networks, () => freeNetworkSlot(used));
  return typeof networks === "string" ? noSlot(`the network ${networks}`) : { disks, networks };

  function assign<T extends { readonly name: string; readonly slot?: string }>(
    slots: Readonly<Record<string, string>>,
    items: readonly T[],
    free: (item: T) => string | undefined,
  ): Record<string, string> | string {
    const assigned = { ...slots };
    for (const item of items) {
      const chosen = assigned[item.name] ?? item.slot ?? free(item);
      if (chosen === undefined) return item.name;
      assigned[item.name] = chosen;
      used.add(chosen);
    }
    return assigned;
  }
}

function noSlot(what: string): Failure {
  const message = `there is no room for ${what} on its bus`;
  return { category: "ConfigurationError", message };
}
