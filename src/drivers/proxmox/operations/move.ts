import type { Begun, Fence, HandOver, Migrate, MoveDisk } from "../../../hypervisor/index.ts";
import type { DriverContext } from "../context.ts";
import { machinePath } from "../config-reader.ts";
import { present } from "../translate/present.ts";
import { isDrive } from "../translate/slots.ts";
import { parseVolume } from "../translate/volumes.ts";
import { parseProperties, property } from "../wire/property-string.ts";
import { notStamped } from "./config-change.ts";
import { begunOf, refused } from "./begun.ts";
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
    digest: config.digest,
    ...present({ format }),
  };
  const path = machinePath(place, "/move_disk");
  const result = await context.api.write("POST", { path, params }, () => fence.mayWrite());
  return begunOf(result, `move the disk ${disk} of VM ${place.externalId} to ${storage}`);
}

/**
 * Hands a volume over to another machine of ours on the same node. The server renames it after its
 * new owner; both digests go along, so neither machine can have changed.
 */
export async function handOver(
  context: DriverContext,
  operation: HandOver,
  fence: Fence,
): Promise<Begun> {
  const { volume, to } = operation;
  const stood = await standAt(context, operation);
  if (!stood.ok) return stood.begun;
  const receiver = await standAt(context, to);
  if (!receiver.ok) return receiver.begun;
  const { place, config } = stood.standing;
  const target = receiver.standing;
  if (target.place.node !== place.node) {
    const message = `a volume can be handed over on one node only, and ${to.claim.externalId} is on ${target.place.node}`;
    return refused({ category: "ConfigurationError", message });
  }
  const slot = target.mark.disks[to.disk];
  if (slot === undefined) return refused(notStamped(to.disk));
  if (target.config.values[slot] !== undefined) {
    return { outcome: "changed", detail: `the receiver has a disk ${to.disk} already` };
  }
  const held = Object.entries(config.values).find(([key, text]) => {
    return isDrive(key) && property(parseProperties(text, "file"), "file") === volume;
  });
  if (held === undefined) return { outcome: "changed", detail: `it does not hold ${volume}` };
  const params = {
    disk: held[0],
    "target-vmid": to.claim.externalId,
    "target-disk": slot,
    digest: config.digest,
    "target-digest": target.config.digest,
  };
  const path = machinePath(place, "/move_disk");
  const result = await context.api.write("POST", { path, params }, () => fence.mayWrite());
  return begunOf(result, `hand ${volume} over to VM ${to.claim.externalId}`);
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
