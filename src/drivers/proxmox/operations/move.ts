import type { Begun, Fence, Migrate, MoveDisk } from "../../../hypervisor/index.ts";
import { precondition } from "../../../kernel/guard.ts";
import type { DriverContext } from "../context.ts";
import { machinePath } from "../config-reader.ts";
import { present } from "../translate/present.ts";
import { parseVolume } from "../translate/volumes.ts";
import { parseProperties, property } from "../wire/property-string.ts";
import { begunOf } from "./begun.ts";
import { standAt, standNow } from "./standing.ts";

/** Copies a disk's data to another storage, also while it is in use, and frees the old volume. */
export async function moveDisk(
  context: DriverContext,
  operation: MoveDisk,
  fence: Fence,
): Promise<Begun> {
  const stood = await standAt(context, operation);
  if (!stood.ok) return stood.begun;
  const { place, config, mark } = stood.standing;
  const { disk, storage, format } = operation;
  const slot = mark.disks[disk];
  const text = slot === undefined ? undefined : config.values[slot];
  if (slot === undefined || text === undefined) {
    return { outcome: "changed", detail: `there is no disk ${disk}` };
  }
  const volume = property(parseProperties(text, "file"), "file") ?? "";
  if (parseVolume(volume)?.storage === storage) return { outcome: "done" };
  const params = {
    disk: slot,
    storage,
    delete: 1,
    ...precondition("move-disk-digest", { digest: config.digest }),
    ...present({ format }),
  };
  const path = machinePath(place, "/move_disk");
  const result = await context.api.write("POST", { path, params }, () => fence.mayWrite());
  return begunOf(result, `move the disk ${disk} of VM ${place.externalId} to ${storage}`);
}

/**
 * Moves a machine to another node. `online` is needed for one that runs and ignored for one that
 * does not; disks that only this node sees are copied along. The call takes no digest.
 */
export async function migrate(
  context: DriverContext,
  operation: Migrate,
  fence: Fence,
): Promise<Begun> {
  const { to, storage } = operation;
  const stood = await standNow(context, operation);
  if (!stood.ok) return stood.begun;
  const { place } = stood.standing;
  if (place.node === to) return { outcome: "done" };
  const params = {
    target: to,
    online: 1,
    "with-local-disks": 1,
    ...present({ targetstorage: storage }),
  };
  const path = machinePath(place, "/migrate");
  const result = await context.api.write("POST", { path, params }, () => fence.mayWrite());
  return begunOf(result, `move VM ${place.externalId} to ${to}`);
}
