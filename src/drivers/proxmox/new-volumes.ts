import type {
  AddDisk,
  Clone,
  Configure,
  MoveDisk,
  NewDisk,
  Operation,
  Shape,
  Suspend,
} from "../../hypervisor/index.ts";
import { readMark } from "../../hypervisor/index.ts";
import type { DriverContext } from "./context.ts";
import { diskValue } from "./operations/add-disk.ts";
import { volumesFor } from "./operations/config-change.ts";
import { placeOf } from "./operations/standing.ts";
import { drivesOf } from "./references.ts";
import { savedBytes, stateStorage } from "./state-storage.ts";
import { formatGibibytes } from "./translate/sizes.ts";
import type { Values } from "./translate/values.ts";
import { parseVolume } from "./translate/volumes.ts";
import { parseProperties, property } from "./wire/property-string.ts";

/** What an operation makes, before anything is known of the storages. */
export interface Making {
  readonly node: string;
  readonly externalId: string;
  readonly volumes: readonly MadeVolume[];
  /** The VM that is copied: the task bears its id (qemu-server, clone_vm). */
  readonly source?: string;
}

export interface MadeVolume {
  readonly storage: string;
  readonly size: VolumeSize;
}

/** How large a new volume is. To find it out may cost a call. */
export type VolumeSize =
  | { readonly is: "bytes"; readonly bytes: number }
  /** As large as this volume. */
  | { readonly is: "sameAs"; readonly volume: string }
  /** As large as what fills the disk. */
  | { readonly is: "filled"; readonly disk: NewDisk };

const gibibyte = 1024 ** 3;
const mebibyte = 1024 ** 2;

/**
 * Sizes that the server has for the small volumes, whatever is asked for: firmware variables of
 * type 4m have 528 KiB, which block devices round up (qemu-server, create_efidisk); a TPM's state
 * and a cloud-init drive have 4 MiB (7.4 to 9.2).
 */
const smallBytes: Readonly<Record<string, number>> = {
  efidisk0: 528 * 1024,
  tpmstate0: 4 * mebibyte,
};
const cloudInitBytes = 4 * mebibyte;

/**
 * The volumes that an operation makes; undefined: none. But for a clone, whose source may have been
 * changed since it was read, it reads what the operation reads anyway, and that is remembered. What
 * is wrong with the operation is reported when it begins.
 */
export async function newVolumes(
  context: DriverContext,
  operation: Operation,
): Promise<Making | undefined> {
  const making = await makingOf(context, operation);
  return making === undefined || making.volumes.length === 0 ? undefined : making;
}

async function makingOf(context: DriverContext, operation: Operation): Promise<Making | undefined> {
  switch (operation.kind) {
    case "addDisk":
      return { ...placeOf(operation), volumes: await ofNewDisk(context, operation) };
    case "configure":
      return { ...placeOf(operation), volumes: await ofShape(context, operation) };
    case "moveDisk":
      return { ...placeOf(operation), volumes: await ofMove(context, operation) };
    case "suspend":
      return { ...placeOf(operation), volumes: await ofSuspend(context, operation) };
    case "clone":
      return ofClone(context, operation);
    default:
      return undefined;
  }
}

async function ofNewDisk(context: DriverContext, operation: AddDisk): Promise<MadeVolume[]> {
  const { disk, also = {} } = operation;
  const { storage, fill, sizeBytes = 0 } = disk;
  const bytes = Number(formatGibibytes(sizeBytes)) * gibibyte;
  const size: VolumeSize = fill.from === "blank" ? { is: "bytes", bytes } : { is: "filled", disk };
  const made = { storage, size };
  if (!needsSmall(also)) return [made];
  const values = (await valuesAt(context, operation)) ?? {};
  const slot = readMark(values["description"] ?? "").mark?.disks[disk.name];
  const withDisk = slot === undefined ? values : { ...values, [slot]: diskValue(disk, "") };
  return [made, ...smallVolumes(also, withDisk)];
}

async function ofShape(context: DriverContext, operation: Configure): Promise<MadeVolume[]> {
  const { shape } = operation;
  if (!needsSmall(shape)) return [];
  const values = await valuesAt(context, operation);
  return values === undefined ? [] : smallVolumes(shape, values);
}

function needsSmall({ firmware, cloudInit }: Shape): boolean {
  return firmware !== undefined || cloudInit !== undefined;
}

/** The volumes for firmware and cloud-init that a shape needs and the VM does not have. */
function smallVolumes(shape: Shape, values: Values): MadeVolume[] {
  const change = volumesFor(shape, values);
  if ("category" in change) return [];
  return Object.entries(change.set).flatMap(([slot, text]): MadeVolume[] => {
    const { storage } = parseVolume(fileOf(text)) ?? {};
    const bytes = smallBytes[slot] ?? cloudInitBytes;
    return storage === undefined ? [] : [{ storage, size: { is: "bytes", bytes } }];
  });
}

async function ofMove(context: DriverContext, operation: MoveDisk): Promise<MadeVolume[]> {
  const { storage, disk } = operation;
  const values = (await valuesAt(context, operation)) ?? {};
  const slot = readMark(values["description"] ?? "").mark?.disks[disk] ?? "";
  const volume = fileOf(values[slot] ?? "");
  return [{ storage, size: { is: "sameAs", volume } }];
}

async function ofSuspend(context: DriverContext, operation: Suspend): Promise<MadeVolume[]> {
  const place = placeOf(operation);
  const read = await context.configs.readAt(place, operation.at.version);
  if (read.type !== "config") return [];
  const { config } = read;
  const storage = operation.storage ?? (await stateStorage(context, place.node, config));
  if (storage === undefined) return [];
  return [{ storage, size: { is: "bytes", bytes: savedBytes(config) } }];
}

/**
 * A copy has a volume for each drive of its source: on the storage that is asked for, else on the
 * same one. Media are shared, but a cloud-init drive is copied. Of a linked clone each volume is as
 * large as its base; of a full one, as its source.
 */
async function ofClone(context: DriverContext, operation: Clone): Promise<Making | undefined> {
  const { claim, node, source, mode, storage: asked } = operation;
  const read = await context.configs.read({ node, externalId: source });
  if (read.type !== "config") return undefined;
  const volumes = drivesOf(read.config).flatMap(([slot, text]): MadeVolume[] => {
    const volume = fileOf(text);
    const { storage: beside, isCloudInit = false } = parseVolume(volume) ?? {};
    const isShared = text.includes("media=cdrom") && !isCloudInit;
    const isLeft = slot === "vmstate" || slot.startsWith("unused");
    if (beside === undefined || isShared || isLeft) return [];
    const storage = mode === "Full" ? (asked ?? beside) : beside;
    return [{ storage, size: { is: "sameAs", volume } }];
  });
  return { node, externalId: claim.externalId, volumes, source };
}

async function valuesAt(
  context: DriverContext,
  operation: Pick<AddDisk, "claim" | "at">,
): Promise<Values | undefined> {
  const read = await context.configs.readAt(placeOf(operation), operation.at.version);
  return read.type === "config" ? read.config.values : undefined;
}

function fileOf(text: string): string {
  return property(parseProperties(text, "file"), "file") ?? "";
}
