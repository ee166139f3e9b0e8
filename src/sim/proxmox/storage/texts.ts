import { PveError } from "../errors.ts";
import type { Format, StorageConfig } from "../state.ts";
import { pathOfVolume } from "./names.ts";

/** The programs that make and remove volumes each have words of their own. */

export function existsError(storage: StorageConfig, name: string): PveError {
  switch (storage.type) {
    case "zfspool": {
      const volume = `${storage.pool ?? ""}/${name}`;
      return new PveError(`zfs error: cannot create '${volume}': dataset already exists`);
    }
    case "lvm":
    case "lvmthin": {
      const what = `Logical Volume "${name}" already exists in volume group "${storage.vgname}"`;
      return new PveError(`lvcreate '${storage.vgname}/${name}' error:   ${what}`);
    }
    case "rbd":
      return new PveError(`rbd create '${name}' error: rbd: create error: (17) File exists`);
    default:
      return new PveError(`disk image '${pathOfVolume(storage, name)}' already exists`);
  }
}

/** No volume of this size can be made; undefined where a storage promises more than it has. */
export function fullError(
  storage: StorageConfig,
  wanted: { readonly name: string; readonly sizeBytes: number; readonly freeBytes: number },
): PveError | undefined {
  const { name, sizeBytes, freeBytes } = wanted;
  switch (storage.type) {
    case "zfspool":
      if (freeBytes >= sizeBytes) return undefined;
      return new PveError(`zfs error: cannot create '${storage.pool}/${name}': out of space`);
    case "lvm":
      if (freeBytes >= sizeBytes) return undefined;
      return new PveError(`not enough free space (${kib(freeBytes)} < ${kib(sizeBytes)})`);
    case "lvmthin": {
      if (freeBytes >= 0) return undefined;
      const pool = `${storage.vgname}/${storage.thinpool}`;
      const what = `Cannot create new thin volume, free space in thin pool ${pool} reached threshold.`;
      return new PveError(`lvcreate '${storage.vgname}/${name}' error:   ${what}`);
    }
    case "rbd":
      return undefined;
    default:
      if (freeBytes >= 0) return undefined;
      return new PveError("unable to create image: No space left on device");
  }
}

function kib(bytes: number): number {
  return Math.floor(Math.max(0, bytes) / 1024);
}

/** A device that somebody has open cannot be removed; a file can. */
export function busyError(storage: StorageConfig, name: string): PveError | undefined {
  switch (storage.type) {
    case "zfspool":
      return new PveError(
        `zfs error: cannot destroy '${storage.pool ?? ""}/${name}': dataset is busy`,
      );
    case "lvm":
    case "lvmthin": {
      const volume = `${storage.vgname}/${name}`;
      return new PveError(`lvremove '${volume}' error:   Logical volume ${volume} in use.`);
    }
    case "rbd":
      return new PveError(
        `rbd rm '${name}' error: rbd: error: image still has watchers: not deleting`,
      );
    default:
      return undefined;
  }
}

/** What is said when a volume that is to be removed is not there; some say nothing. */
export function missingLine(storage: StorageConfig, name: string): string | undefined {
  if (["zfspool", "lvm", "lvmthin"].includes(storage.type)) return undefined;
  if (storage.type === "rbd")
    return `rbd: error opening image ${name}: (2) No such file or directory`;
  return `disk image '${pathOfVolume(storage, name)}' does not exist`;
}

/** What a linked clone prints: files and RBD name it, LVM by its program, ZFS says nothing. */
export function cloneLine(
  { type }: StorageConfig,
  { base, file, vmid }: { readonly base: string; readonly file: string; readonly vmid: number },
): string | undefined {
  if (type === "zfspool") return undefined;
  if (type === "rbd") return `clone ${base}: ${base} snapname __base__ to ${file}`;
  if (type === "lvm" || type === "lvmthin") return `  Logical volume "${file}" created.`;
  return `clone ${base}: images, ${file}, ${vmid} to ${file} (base=../${base})`;
}

/** What the program that makes a volume prints. */
export function creationLine(
  storage: StorageConfig,
  { name, format, sizeBytes }: { name: string; format: Format; sizeBytes: number },
): string | undefined {
  if (["zfspool", "rbd"].includes(storage.type)) return undefined;
  if (["lvm", "lvmthin"].includes(storage.type)) return `  Logical volume "${name}" created.`;
  const path = pathOfVolume(storage, name);
  if (format === "qcow2") {
    const first = "cluster_size=65536 extended_l2=off preallocation=metadata compression_type=zlib";
    const last = "lazy_refcounts=off refcount_bits=16";
    return `Formatting '${path}', fmt=qcow2 ${first} size=${sizeBytes} ${last}`;
  }
  return `Formatting '${path}', fmt=${format} size=${sizeBytes} preallocation=off`;
}
