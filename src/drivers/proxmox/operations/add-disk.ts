import type { AddDisk, Begun, Failure, Fence, NewDisk } from "../../../hypervisor/index.ts";
import { readMark } from "../../../hypervisor/index.ts";
import { guard, precondition } from "../../../kernel/guard.ts";
import type { DriverContext } from "../context.ts";
import { machinePath } from "../config-reader.ts";
import { otherFile } from "../known-file.ts";
import { allocateNamed, namedVolume } from "../named-volumes.ts";
import { joinChanges } from "../translate/config.ts";
import { writeDiskOptions } from "../translate/disks.ts";
import { writeBootOrder } from "../translate/shape.ts";
import { formatGibibytes } from "../translate/sizes.ts";
import type { Values } from "../translate/values.ts";
import { formatProperties, parseProperties, property } from "../wire/property-string.ts";
import { begunOf, refused } from "./begun.ts";
import { isDisk } from "../translate/boot-order.ts";
import { bootSlot, changeFor, effective, notStamped } from "./config-change.ts";
import { standAt } from "./standing.ts";

/**
 * Makes a disk in the slot that the mark keeps for it. `import-from` through POST config takes no
 * config lock and leaves the mark alone; with the digest it happens once or not at all. A crash
 * leaves at most an unreferenced volume, which is found as a leftover (7.2 to 9.2). The volume of a
 * blank disk is made first, under the name that the Claim has for it, and then attached.
 */
export async function addDisk(
  context: DriverContext,
  operation: AddDisk,
  fence: Fence,
): Promise<Begun> {
  const { disk, bootOrder, also = {} } = operation;
  const stood = await standAt(context, operation);
  if (!stood.ok) return stood.begun;
  const { place, config, mark } = stood.standing;
  const slot = mark.disks[disk.name];
  if (slot === undefined) return refused(notStamped(disk.name));
  if (!guard("add-disk-slot-free", config.values[slot] === undefined)) {
    return { outcome: "changed", detail: `${disk.name} is already there, as ${slot}` };
  }
  const source = await provenSource(context, disk, place.node);
  if (typeof source !== "string") return refused(source);
  const volume = namedVolume(operation);
  const value = valueOf(disk, source, volume);
  const values = { ...config.values, [slot]: value };
  const change = changeFor(also, { ...stood.standing, config: { ...config, values } });
  if ("category" in change) return refused(change);
  const order = writeBootOrder(bootOrder, mark, values);
  const { set, remove } = effective(joinChanges([change, order]), config.values);
  const unmade = await allocateNamed(context, operation, { volume, fence });
  if (unmade !== undefined) return unmade;
  const result = await context.api.write(
    "POST",
    {
      path: machinePath(place, "/config"),
      params: {
        ...precondition("add-disk-digest", { digest: config.digest }),
        ...set,
        [slot]: value,
        ...(remove.length > 0 ? { delete: remove.join(",") } : {}),
      },
    },
    () => fence.mayWrite(),
  );
  return begunOf(result, `add the disk ${disk.name} to VM ${place.externalId}`);
}

/** A disk whose volume the server makes, or the one of a volume that was made by name. */
function valueOf(disk: NewDisk, source: string, volume: string | undefined): string {
  if (volume === undefined) return diskValue(disk, source);
  return formatProperties(writeDiskOptions(disk, [["file", volume]]), "file");
}

/** `storage:8` for a new volume of 8 GiB; `storage:0,import-from=…` for a copy of another. */
export function diskValue(disk: NewDisk, source: string): string {
  const { storage, fill, format, sizeBytes } = disk;
  const isBlank = fill.from === "blank";
  const head = `${storage}:${isBlank ? formatGibibytes(sizeBytes ?? 0) : "0"}`;
  const options = writeDiskOptions(disk, [
    ["file", head],
    ...(isBlank ? [] : [["import-from", source] as const]),
    ...(format === undefined ? [] : [["format", format] as const]),
  ]);
  return formatProperties(options, "file");
}

/** The volume to copy from, if it is still the file that was verified. */
async function provenSource(
  context: DriverContext,
  disk: NewDisk,
  node: string,
): Promise<string | Failure> {
  const { fill } = disk;
  if (fill.from === "volume" && fill.knownFile !== undefined) {
    const { volume, knownFile: known } = fill;
    const other = await otherFile(context, { node, volume, known });
    if (other !== undefined) return other;
  }
  return sourceOf(context, disk, node);
}

/** The volume to copy from; the empty text for a blank disk. */
export async function sourceOf(
  context: DriverContext,
  { name, fill, sizeBytes }: NewDisk,
  node: string,
): Promise<string | Failure> {
  if (fill.from === "volume") return fill.volume;
  if (fill.from === "blank") {
    if (sizeBytes !== undefined && sizeBytes > 0) return "";
    return { category: "ConfigurationError", message: `the blank disk ${name} needs a size` };
  }
  const { externalId, disk } = fill;
  const read = await context.configs.read({ node, externalId });
  if (read.type === "failed") return read.failure;
  if (read.type === "notHere") {
    // import-from reads the source's volumes on the node of the new machine only.
    const message = `the machine ${externalId} to copy from is not on ${node}`;
    return { category: "ImageNotFound", message };
  }
  const volume = diskOf(read.config.values, disk);
  if (volume !== undefined) return volume;
  const message = `the machine ${externalId} has no disk ${disk ?? "to boot from"}`;
  return { category: "ImageNotFound", message };
}

/** A disk by its name in the mark, by its slot, or the one that the machine starts from. */
function diskOf(values: Values, disk: string | undefined): string | undefined {
  const slot = disk === undefined ? bootSlot(values) : slotOf(values, disk);
  const text = slot === undefined ? undefined : values[slot];
  if (text === undefined || !isDisk(text)) return undefined;
  return property(parseProperties(text, "file"), "file");
}

function slotOf(values: Values, disk: string): string {
  return readMark(values["description"] ?? "").mark?.disks[disk] ?? disk;
}
