import type { AddDisk, Answer, Begun, Fence, NewDisk, Operation } from "../../hypervisor/index.ts";
import { answered } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { DriverContext } from "./context.ts";
import { begunOf } from "./operations/begun.ts";
import { type StorageSettings, storageSettings } from "./storages.ts";
import { formatGibibytes } from "./translate/sizes.ts";
import { fileNameOf } from "./translate/volumes.ts";
import { pathPart } from "./wire/wire.ts";

/** The formats of files are told by their names; devices have none (pve-storage, alloc_image). */
const files: ReadonlySet<string> = new Set(["dir", "nfs", "cifs", "glusterfs", "btrfs"]);
const devices: ReadonlySet<string> = new Set(["zfspool", "zfs", "rbd", "lvmthin"]);

/**
 * The id that the volume of a blank disk will have. The last part of the operation's id is in it,
 * so that no two attempts share a name and nobody else has it by chance. It is no `disk-N`: the
 * server does not count it when it looks for a free number. Undefined: the operation makes no blank
 * disk, or the storage cannot allocate by name. See docs/decisions/0018.
 */
export async function nameBlankDisk(
  context: DriverContext,
  operation: Operation,
  { id, type }: { readonly id: string; readonly type: string },
): Promise<Answer<string | undefined>> {
  if (operation.kind !== "addDisk" || operation.disk.fill.from !== "blank") {
    return answered(undefined);
  }
  const { claim, disk } = operation;
  const name = `vm-${claim.externalId}-berth-${id.slice(-12)}`;
  if (devices.has(type)) return answered(`${disk.storage}:${name}`);
  if (!files.has(type) && type !== "lvm") return answered(undefined);
  const settings = await settingsOf(context, disk.storage);
  if (!settings.ok) return settings;
  const formatted = settings.value && formattedName(type, { name, disk }, settings.value);
  const folder = files.has(type) ? `${claim.externalId}/` : "";
  return answered(formatted && `${disk.storage}:${folder}${formatted}`);
}

/** The name with what tells its format. Undefined: the request would write the whole file. */
function formattedName(
  type: string,
  { name, disk }: { readonly name: string; readonly disk: NewDisk },
  { format: usual = "raw", isPreallocated, isVolumeChain }: StorageSettings,
): string | undefined {
  if (type === "lvm") {
    const format = disk.format ?? (isVolumeChain ? "qcow2" : "raw");
    return format === "qcow2" ? `${name}.qcow2` : name;
  }
  return isPreallocated ? undefined : `${name}.${disk.format ?? usual}`;
}

/** Read once for all disks of the same seconds. Undefined: the token does not see the storage. */
async function settingsOf(
  { api, glance }: DriverContext,
  storage: string,
): Promise<Answer<StorageSettings | undefined>> {
  const read = glance.storageSettings;
  const settings = read === undefined ? await storageSettings(api) : answered(read);
  if (!settings.ok) return settings;
  glance.storageSettings = settings.value;
  return answered(settings.value.get(storage));
}

/** The volume whose name was recorded for this disk before anything was sent, if there is one. */
export function namedVolume({ claim: { allocation }, disk }: AddDisk): string | undefined {
  if (allocation === undefined || disk.fill.from !== "blank") return undefined;
  const isOpen = allocation.settledAt === undefined && allocation.storage === disk.storage;
  return guard("named-volume-recorded", isOpen) ? allocation.volume : undefined;
}

/**
 * Makes the volume of a blank disk under the name that the Claim has. The next request attaches it;
 * if that never comes, the Claim says whose the volume is. The server does it at once, without a
 * task. Undefined: it was made, or the disk has no such volume.
 */
export async function allocateNamed(
  { api }: DriverContext,
  operation: AddDisk,
  { volume, fence }: { readonly volume: string | undefined; readonly fence: Fence },
): Promise<Begun | undefined> {
  if (volume === undefined) return undefined;
  const { claim, at, disk } = operation;
  const path = `/nodes/${pathPart(at.node)}/storage/${pathPart(disk.storage)}/content`;
  const filename = fileNameOf(volume);
  const format = disk.format ?? (filename.endsWith(".qcow2") ? "qcow2" : "raw");
  const params = {
    filename,
    vmid: claim.externalId,
    size: kibibytesOf(disk.sizeBytes ?? 0),
    // 7.4 does not take this one as a parameter, and every release reads it from the name.
    ...(filename.endsWith(".vmdk") ? {} : { format }),
  };
  const result = await api.write("POST", { path, params }, () => fence.mayWrite());
  const begun = begunOf(result, `allocate the volume ${volume}`);
  return begun.outcome === "done" ? undefined : begun;
}

/** A bare number counts KiB here. The size is the one that a new disk would have. */
function kibibytesOf(bytes: number): string {
  return String(Math.round(Number(formatGibibytes(bytes)) * 1024 ** 2));
}
