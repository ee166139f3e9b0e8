import type { GuestConfig, Section } from "../config-file.ts";

/** A drive of a guest: its file, and its options by name. */
export interface Drive {
  readonly file: string;
  readonly options: ReadonlyMap<string, string>;
}

/** "local:101/vm-101-disk-0.qcow2,size=1G" taken apart; "file=" may stand in front. */
export function parseDrive(text: string): Drive {
  let file = "";
  const options = new Map<string, string>();
  for (const piece of text.split(",")) {
    // An empty piece is skipped, as in every property string: "local:cloudinit," is valid.
    if (piece.trim() === "") continue;
    const at = piece.indexOf("=");
    const name = at < 0 ? "file" : piece.slice(0, at);
    const value = piece.slice(at + 1);
    if (name === "file" || name === "volume") file = value;
    else options.set(name, value);
  }
  return { file, options };
}

/** The file first, then the options in alphabetical order, as Proxmox prints it. */
export function printDrive({ file, options }: Drive): string {
  const names = [...options.keys()].sort();
  return [file, ...names.map((name) => `${name}=${options.get(name) ?? ""}`)].join(",");
}

export function withOptions(
  drive: Drive,
  changes: Readonly<Record<string, string | undefined>>,
): Drive {
  const options = new Map(drive.options);
  for (const [name, value] of Object.entries(changes)) {
    if (value === undefined) options.delete(name);
    else options.set(name, value);
  }
  return { file: drive.file, options };
}

export function isDriveKey(key: string): boolean {
  return /^(ide|sata|scsi|virtio)\d+$|^efidisk0$|^tpmstate0$/.test(key);
}

export function isCdrom({ options }: Drive): boolean {
  return options.get("media") === "cdrom";
}

export function isCloudinit({ file }: Drive): boolean {
  return /(^|[:/])(vm-\d+-)?cloudinit(\.\w+)?$/.test(file);
}

/** "local:8": a disk to be made, in GiB. */
export function newDiskOf(file: string): { storage: string; gib: number } | undefined {
  const found = /^(?:([^/:\s]+):)?(\d+(?:\.\d+)?)$/.exec(file);
  return found === null ? undefined : { storage: found[1] ?? "", gib: Number(found[2]) };
}

/** "local:cloudinit": a cloud-init drive to be made. */
export function newCloudinitOf(file: string): string | undefined {
  return /^([^/:\s]+):cloudinit$/.exec(file)?.[1];
}

/** The drives of a section, in the order of their names. */
export function drivesOf(section: Section): [string, Drive][] {
  return [...section.keys()]
    .filter(isDriveKey)
    .sort()
    .map((key) => [key, parseDrive(section.get(key) ?? "")]);
}

/** Every volume that the guest names anywhere: config, unused, pending, snapshots. */
export function volumesNamedBy(config: GuestConfig): Set<string> {
  const sections = [config.main, config.pending, ...config.snapshots.values()];
  return new Set(sections.flatMap((section) => volumesOfSection(section)));
}

export function volumesOfSection(section: Section): string[] {
  const drives = drivesOf(section).map(([, { file }]) => file);
  const others = [...section]
    .filter(([key]) => /^unused\d+$|^vmstate$/.test(key))
    .map(([, value]) => parseDrive(value).file);
  return [...drives, ...others].filter((file) => /^[a-z][\w.-]*:/i.test(file));
}

const units = ["", "K", "M", "G", "T"];

/** Bytes as Proxmox writes sizes: in the largest unit that divides them. Nothing is "0T". */
export function printSize(bytes: number): string {
  let value = bytes;
  let unit = 0;
  while (unit < units.length - 1 && value % 1024 === 0) {
    value /= 1024;
    unit++;
  }
  return `${value}${units[unit]}`;
}

export function parseSize(text: string): number | undefined {
  const found = /^(\d+(?:\.\d+)?)([KMGT])?$/.exec(text);
  if (found === null) return undefined;
  return Math.floor(Number(found[1]) * 1024 ** units.indexOf(found[2] ?? ""));
}
