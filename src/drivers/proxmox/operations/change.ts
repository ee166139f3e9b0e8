import type { Begun, Configure, Fence, Grow } from "../../../hypervisor/index.ts";
import type { DriverContext } from "../context.ts";
import { machinePath } from "../config-reader.ts";
import type { ConfigChange } from "../translate/config.ts";
import { formatSize, parseSize } from "../translate/sizes.ts";
import { parseProperties, property } from "../wire/property-string.ts";
import { begunOf, refused } from "./begun.ts";
import { changeFor, effective } from "./config-change.ts";
import { standAt, type Standing } from "./standing.ts";

/** Grows to an absolute size, which is safe to repeat; "+5G" would not be. */
export async function grow(context: DriverContext, operation: Grow, fence: Fence): Promise<Begun> {
  const stood = await standAt(context, operation);
  if (!stood.ok) return stood.begun;
  const { place, config, mark } = stood.standing;
  const { disk, sizeBytes } = operation;
  const slot = mark.disks[disk];
  const text = slot === undefined ? undefined : config.values[slot];
  if (slot === undefined || text === undefined) {
    return { outcome: "changed", detail: `there is no disk ${disk}` };
  }
  const seenBytes = parseSize(property(parseProperties(text, "file"), "size") ?? "") ?? 0;
  if (seenBytes === sizeBytes) return { outcome: "done" };
  if (seenBytes > sizeBytes) {
    const message = `the disk ${disk} has ${formatSize(seenBytes)} and cannot shrink`;
    return refused({ category: "ReplacementRequired", message });
  }
  const params = { disk: slot, size: formatSize(sizeBytes), digest: config.digest };
  const path = machinePath(place, "/resize");
  const result = await context.api.write("PUT", { path, params }, () => fence.mayWrite());
  return begunOf(result, `grow the disk ${disk} of VM ${place.externalId}`);
}

/** Writes what differs and nothing else. */
export async function configure(
  context: DriverContext,
  operation: Configure,
  fence: Fence,
): Promise<Begun> {
  const stood = await standAt(context, operation);
  if (!stood.ok) return stood.begun;
  const { standing } = stood;
  const change = changeFor(operation.shape, standing);
  if ("category" in change) return refused(change);
  const { makesVolume } = change;
  return await send(context, { standing, change, makesVolume }, fence);
}

export interface Writing {
  readonly standing: Standing;
  readonly change: ConfigChange;
  /** It makes or frees a volume, which takes its time. */
  readonly makesVolume?: boolean;
}

/**
 * PUT is done when it returns; POST starts a worker, which only what makes a volume is worth: a
 * node that is short of workers fails to start one now and then.
 */
export async function send(
  { api }: DriverContext,
  { standing, change, makesVolume = false }: Writing,
  fence: Fence,
): Promise<Begun> {
  const { place, config } = standing;
  const { set, remove } = effective(change, config.values);
  if (Object.keys(set).length === 0 && remove.length === 0) return { outcome: "done" };
  const result = await api.write(
    makesVolume ? "POST" : "PUT",
    {
      path: machinePath(place, "/config"),
      params: {
        ...set,
        digest: config.digest,
        ...(remove.length > 0 ? { delete: remove.join(",") } : {}),
      },
    },
    () => fence.mayWrite(),
  );
  return begunOf(result, `configure VM ${place.externalId}`);
}
