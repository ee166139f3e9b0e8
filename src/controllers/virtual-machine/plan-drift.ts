import type { Difference, Machine, NewDisk } from "../../hypervisor/index.ts";
import type { Declared, Found } from "./next.ts";
import { sizeText } from "./quantities.ts";

/** All that somebody changed by hand, also what could not be put back. Pure. */
export function driftOf(
  { disks, pinnedDisks = [] }: Pick<Declared, "disks" | "pinnedDisks">,
  { machine, differences }: Pick<Found, "machine" | "differences">,
): Difference[] {
  const drift = [...differences];
  for (const disk of disks) {
    for (const found of diskDrift(disk, machine, pinnedDisks.includes(disk.name))) {
      if (!drift.some(({ path }) => path === found.path)) drift.push(found);
    }
  }
  return drift;
}

/** A disk that is away, of another size, or elsewhere than its entry itself says. */
function* diskDrift(
  { name, sizeBytes, storage }: NewDisk,
  machine: Machine,
  isPinned: boolean,
): Iterable<Difference> {
  const path = `disks[${name}]`;
  const seen = machine.disks.find((disk) => disk.name === name);
  if (seen === undefined) {
    yield { path, wanted: { name }, seen: undefined };
    return;
  }
  if (sizeBytes !== undefined && sizeBytes !== seen.sizeBytes) {
    const texts = { wanted: sizeText(sizeBytes), seen: sizeText(seen.sizeBytes) };
    yield { path: `${path}.size`, ...texts };
  }
  if (isPinned && storage !== seen.storage) {
    yield { path: `${path}.storage`, wanted: storage, seen: seen.storage };
  }
}
