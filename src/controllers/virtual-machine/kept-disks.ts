import { isHeld } from "../claims/index.ts";
import type { KeptDisk } from "./next.ts";
import type { ConnectedTurn } from "./turn.ts";

/**
 * Disks that keepers hold for this object: those of its own name, by their names; and one of its
 * namespace that its source names by the volume.
 */
export function keptDisks({ vm, deps, connection }: ConnectedTurn): KeptDisk[] {
  const { namespace = "", name, uid } = vm.metadata;
  const { importedDisk } = vm.spec.source ?? {};
  const taken = importedDisk?.mode === "Take" ? importedDisk : undefined;
  const declared = new Set(vm.spec.disks?.map((disk) => disk.name));
  return deps.ledger.keepersFor(namespace, connection.systemId).flatMap((keeper) => {
    // Another object takes its own disk out of it: what is left is let go again after that.
    const isBusy = isHeld(keeper) && keeper.owner.uid !== uid;
    return (keeper.volumes ?? []).flatMap(({ id, disk: kept, storage, onDelete }): KeptDisk[] => {
      const own = keeper.owner.name === name ? kept : undefined;
      const disk = taken?.diskId === id ? taken.disk : own;
      if (onDelete !== "Retain" || disk === undefined || !declared.has(disk)) return [];
      const { externalId, node } = keeper;
      const place = { ...(storage && { storage }), ...(node && { node }) };
      const busy = isBusy ? { isBusy } : {};
      return [{ disk, volume: id, keeper: externalId, ...place, ...busy }];
    });
  });
}
