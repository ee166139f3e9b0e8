import { PveError } from "../errors.ts";
import type { Format, StorageConfig } from "../state.ts";

/** What the name of a volume tells: which kind, whose, and on what it is based. */
export interface VolumeName {
  readonly content: string;
  /** The last part: "vm-101-disk-0.qcow2". */
  readonly file: string;
  readonly format: Format;
  readonly vmid?: number;
  /** The base volume, for a linked clone whose name says so. */
  readonly base?: string;
  readonly isBase: boolean;
}

/** Whether volumes are files in a directory; else they are block devices with flat names. */
export function isFileBased(storage: Pick<StorageConfig, "type">): boolean {
  return ["dir", "nfs", "cifs", "cephfs", "btrfs"].includes(storage.type);
}

export function parseVolumeId(volid: string): { storage: string; name: string } {
  const found = /^([a-z][a-z0-9\-_.]*[a-z0-9]):(.+)$/i.exec(volid);
  if (found === null) throw new PveError(`unable to parse volume ID '${volid}'`);
  return { storage: found[1] ?? "", name: found[2] ?? "" };
}

export function parseVolumeName(storage: StorageConfig, name: string): VolumeName {
  const parsed = isFileBased(storage) ? parseFileName(name) : parseDeviceName(storage, name);
  if (parsed !== undefined) return parsed;
  const kind = kinds[storage.type] ?? storage.type;
  throw new PveError(`unable to parse ${kind} volume name '${name}'`);
}

const kinds: Readonly<Record<string, string>> = {
  dir: "directory",
  nfs: "directory",
  cifs: "directory",
  zfspool: "zfs",
  lvmthin: "lvm",
  lvm: "lvm",
  rbd: "rbd",
};

const imageExtension = /\.(raw|qcow2|vmdk|subvol)$/;

function parseFileName(name: string): VolumeName | undefined {
  const linked = /^(\d+)\/(\S+)\/(\d+)\/(\S+)$/.exec(name);
  if (linked !== null) {
    return imageName(linked[4] ?? "", Number(linked[3]), `${linked[1]}/${linked[2]}`);
  }
  const image = /^(\d+)\/([^/\s]+)$/.exec(name);
  if (image !== null) return imageName(image[2] ?? "", Number(image[1]));
  return parseOtherFile(name);
}

function imageName(file: string, vmid: number, base?: string): VolumeName | undefined {
  const format = imageExtension.exec(file)?.[1];
  if (format === undefined) return undefined;
  const isBase = file.startsWith("base-");
  const common = { content: "images", file, format: formatOf(format), vmid, isBase };
  return base === undefined ? common : { ...common, base };
}

const otherFiles: readonly { pattern: RegExp; content: string; format?: Format }[] = [
  { pattern: /^iso\/([^/]+\.(?:iso|img))$/i, content: "iso", format: "iso" },
  { pattern: /^vztmpl\/([^/]+\.tar\.(?:gz|xz|zst|bz2))$/, content: "vztmpl", format: "tgz" },
  { pattern: /^import\/([A-Za-z0-9\-.+=_]+\.(ova|ovf|qcow2|raw|vmdk))$/, content: "import" },
  { pattern: /^snippets\/([^/]+)$/, content: "snippets", format: "snippet" },
  { pattern: /^backup\/([^/]+)$/, content: "backup", format: "raw" },
  { pattern: /^rootdir\/(\d+)$/, content: "rootdir", format: "subvol" },
];

function parseOtherFile(name: string): VolumeName | undefined {
  for (const { pattern, content, format } of otherFiles) {
    const found = pattern.exec(name);
    if (found === null) continue;
    const own = format ?? formatOf(found[2] ?? "raw");
    return { content, file: found[1] ?? "", format: own, isBase: false };
  }
  return undefined;
}

function parseDeviceName(storage: StorageConfig, name: string): VolumeName | undefined {
  const [first = "", second, ...rest] = name.split("/");
  const file = second ?? first;
  const found = /^(vm|base)-(\d+)-\S+$/.exec(file);
  // Thin volumes never carry a base in their names.
  const isLinked = second !== undefined && /^base-\d+-\S+$/.test(first);
  const isKnown = second === undefined || (isLinked && storage.type !== "lvmthin");
  if (found === null || !isKnown || rest.length > 0) return undefined;
  const common = {
    content: "images",
    file,
    format: "raw" as const,
    vmid: Number(found[2]),
    isBase: found[1] === "base",
  };
  return second === undefined ? common : { ...common, base: first };
}

export function formatOf(text: string): Format {
  const formats: readonly Format[] = ["raw", "qcow2", "vmdk", "iso", "tgz", "subvol", "ova"];
  return formats.find((format) => format === text) ?? "raw";
}

/** Where the volume lies on its node. */
export function pathOfVolume(storage: StorageConfig, name: string): string {
  const { content, file, vmid } = parseVolumeName(storage, name);
  if (!isFileBased(storage)) return devicePath(storage, file);
  const folder = folders[content] ?? content;
  const owner = content === "images" ? `/${vmid ?? 0}` : "";
  return `${rootPath(storage)}/${folder}${owner}/${file}`;
}

const folders: Readonly<Record<string, string>> = {
  images: "images",
  iso: "template/iso",
  vztmpl: "template/cache",
  import: "import",
  snippets: "snippets",
  backup: "dump",
  rootdir: "private",
};

export function rootPath(storage: StorageConfig): string {
  return storage.path ?? `/mnt/pve/${storage.storage}`;
}

function devicePath(storage: StorageConfig, file: string): string {
  if (storage.type === "zfspool") return `/dev/zvol/${storage.pool ?? "rpool/data"}/${file}`;
  if (storage.type === "rbd") return `rbd:${storage.pool ?? "rbd"}/${file}`;
  return `/dev/${storage.vgname ?? "pve"}/${file}`;
}
