import type { Begun, Fence, Grow } from "../../../hypervisor/index.ts";
import { guard, precondition } from "../../../kernel/guard.ts";
import { machinePath } from "../config-reader.ts";
import type { DriverContext } from "../context.ts";
import { listVolumes } from "../storages.ts";
import { formatSize, parseSize } from "../translate/sizes.ts";
import { parseVolume } from "../translate/volumes.ts";
import { parseProperties, property } from "../wire/property-string.ts";
import { begunOf, refused } from "./begun.ts";
import { standAt } from "./standing.ts";
import { writeAgain, type Drive } from "./write-again.ts";

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
  if (!guard("grow-drive-applied", !config.pending.keys.includes(slot))) {
    return await writeAgain(context, { slot, text, standing: stood.standing }, fence);
  }
  const seenBytes = sizeOf(text);
  if (seenBytes === sizeBytes) return { outcome: "done" };
  if (!guard("grow-never-shrinks", seenBytes <= sizeBytes)) {
    const message = `the disk ${disk} has ${formatSize(seenBytes)} and cannot shrink`;
    return refused({ category: "ReplacementRequired", message });
  }
  if (operation.isRepeated === true) {
    const drive = { slot, text, standing: stood.standing };
    const corrected = await correctSize(context, { drive, sizeBytes, disk }, fence);
    if (corrected !== undefined) return corrected;
  }
  const same = precondition("grow-digest", { digest: config.digest });
  const params = { disk: slot, size: formatSize(sizeBytes), ...same };
  const path = machinePath(place, "/resize");
  const result = await context.api.write("PUT", { path, params }, () => fence.mayWrite());
  return begunOf(result, `grow the disk ${disk} of VM ${place.externalId}`);
}

function sizeOf(drive: string): number {
  return parseSize(property(parseProperties(drive, "file"), "size") ?? "") ?? 0;
}

interface Correction {
  readonly drive: Drive;
  readonly disk: string;
  readonly sizeBytes: number;
}

/**
 * A worker that died between growing the volume and writing its size down leaves a configuration
 * that is wrong for ever: the server takes a second resize for done, because the volume has that
 * size already. So where one changed nothing the volume itself is looked at.
 */
async function correctSize(
  context: DriverContext,
  { drive, sizeBytes, disk }: Correction,
  fence: Fence,
): Promise<Begun | undefined> {
  const { slot, text, standing } = drive;
  const { place, config } = standing;
  const volume = property(parseProperties(text, "file"), "file") ?? "";
  const storage = parseVolume(volume)?.storage ?? "";
  const filter = { content: "images", vmid: place.externalId };
  const listed = await listVolumes(context.api, { node: place.node, storage }, filter);
  if (!listed.ok) return refused(listed.failure);
  const real = listed.value.find((row) => row.volume === volume);
  if (real === undefined || real.sizeBytes < sizeBytes) return undefined;
  const size = `size=${formatSize(real.sizeBytes)}`;
  const corrected = /(^|,)size=[^,]*/.test(text)
    ? text.replace(/(^|,)size=[^,]*/, `$1${size}`)
    : `${text},${size}`;
  const same = precondition("correct-size-digest", { digest: config.digest });
  const params = { [slot]: corrected, ...same };
  const path = machinePath(place, "/config");
  const result = await context.api.write("PUT", { path, params }, () => fence.mayWrite());
  return begunOf(result, `write down the size of the disk ${disk} of VM ${place.externalId}`);
}
