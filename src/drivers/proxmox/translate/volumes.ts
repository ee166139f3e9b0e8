/** A volume's id taken apart: `storage:name`, and whose it says it is. */
export interface Volume {
  readonly id: string;
  readonly storage: string;
  /** The VMID in its name; absent for files that belong to no machine. */
  readonly owner?: string;
  /** Named as a cloud-init drive: only a CD-ROM drive with such a volume is one. */
  readonly isCloudInit: boolean;
  /** Named as saved memory. People give their own volumes such names: it proves nothing. */
  readonly isNamedState: boolean;
}

// local:100/vm-100-disk-0.qcow2, zfs:vm-100-disk-0, zfs:base-1-disk-0/vm-2-disk-0: the last counts.
const owned = /(?:^|\/)(?:vm|base|subvol|basevol)-(\d+)-([^/]+)$/;

export function parseVolume(id: string): Volume | undefined {
  const at = id.indexOf(":");
  if (at <= 0) return undefined;
  const name = id.slice(at + 1);
  const match = owned.exec(name);
  const owner = match?.[1];
  const rest = match?.[2] ?? "";
  return {
    id,
    storage: id.slice(0, at),
    ...(owner === undefined ? {} : { owner }),
    isCloudInit: /^cloudinit(\.\w+)?$/.test(rest),
    isNamedState: rest.startsWith("state-"),
  };
}

/**
 * A volume's name without its storage. Two storages may be one pool under two ids, so the same name
 * elsewhere may be the same volume.
 */
export function nameWithoutStorage(id: string): string {
  return id.slice(id.indexOf(":") + 1);
}

/** The name of an image file: what follows the last slash. */
export function fileNameOf(id: string): string {
  return id.slice(Math.max(id.lastIndexOf("/"), id.indexOf(":")) + 1);
}
