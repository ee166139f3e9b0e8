import type { Dice } from "./dice.ts";
import { putVolume, takeVolume, type Found } from "./hands-volumes.ts";
import type { Site } from "./site.ts";

/** A disk of a machine: the line of its file, and the volume behind it. */
interface FoundDisk extends Found {
  readonly node: string;
  readonly text: string;
  readonly line: string;
  readonly volume: Volume;
}

type Volume = Site["model"]["cluster"]["state"]["volumes"][string][number];

/** A machine, and which volumes its Claim names. */
interface FoundClaimed extends Found {
  readonly isClaimed: (volume: string) => boolean;
}

/** What people do by hand to the disks of a machine. Each tells what it did, if it did anything. */
export const diskHands = {
  detachDisk,
  growDisk,
  renameDisk,
  replaceDisk,
  reuseName,
  reuseFirmwareName,
  attachNamedMemory,
  fillEmptySlot,
  removeReplaced,
  moveToOtherSlot,
} as const;

/**
 * Somebody takes a disk off a machine: its volume stays with it, unused. Of a volume that was given
 * another name since Berth looked nobody could tell any more which disk it was.
 */
function detachDisk(found: FoundClaimed, dice: Dice): string | undefined {
  const disk = anyDisk(found, dice);
  if (disk === undefined || !found.isClaimed(disk.volume.name)) return undefined;
  const { text, line, volume } = disk;
  const unused = freeUnused(text);
  if (unused === undefined) return undefined;
  write(disk, text.replace(line, `${unused}: local-zfs:${volume.name}`));
  return `detaches the disk ${volume.name} of ${found.id}`;
}

function freeUnused(text: string): string | undefined {
  const places = ["unused0", "unused1", "unused2", "unused3"];
  return places.find((place) => !new RegExp(`^${place}:`, "m").test(text));
}

/** Somebody puts a volume of their own, as large as ours, into the slot of a disk of Berth's. */
function replaceDisk(found: FoundClaimed, dice: Dice): string | undefined {
  const disk = anyDisk(found, dice);
  if (disk === undefined || !found.isClaimed(disk.volume.name)) return undefined;
  const { site, id, node, text, line, volume } = disk;
  const unused = freeUnused(text);
  const name = `vm-${id}-put-${dice.between(0, 3)}`;
  if (unused === undefined || !putVolume({ site, id }, `${node}:rpool/data`, name))
    return undefined;
  resize(disk, name, volume.sizeBytes);
  const put = line.replace(`:${volume.name},`, `:${name},`);
  write(disk, `${text.replace(line, put)}${unused}: local-zfs:${volume.name}\n`);
  return `puts ${name} in the place of ${volume.name} of ${id}`;
}

/** Somebody takes a disk of Berth's away, and gives its name to a larger one of their own. */
function reuseName(found: FoundClaimed, dice: Dice): string | undefined {
  const disk = anyDisk(found, dice);
  if (disk === undefined || !found.isClaimed(disk.volume.name)) return undefined;
  const { site, id, node, text, line, volume } = disk;
  if (/^scsi9:/m.test(text)) return undefined;
  const { name, sizeBytes } = volume;
  takeVolume(site, name);
  if (!putVolume({ site, id }, `${node}:rpool/data`, name)) return undefined;
  resize(disk, name, sizeBytes + 3 * 1024 ** 3);
  const gib = sizeBytes / 1024 ** 3 + 3;
  write(disk, text.replace(line, `scsi9: local-zfs:${name},size=${gib}G`));
  return `uses the name ${name} of ${id} again`;
}

/** Somebody takes the firmware variables away, and their name is free for a disk of theirs. */
function reuseFirmwareName({ site, id, isClaimed }: FoundClaimed): string | undefined {
  const node = site.model.cluster.nodeOfGuest(Number(id));
  const text = site.text(id) ?? "";
  const [line, name = ""] = /^efidisk0: local-zfs:([^,\n]+).*$/m.exec(text) ?? [];
  if (node === undefined || line === undefined || /^\[|^lock:|^scsi9:/m.test(text))
    return undefined;
  if (!isClaimed(name)) return undefined;
  takeVolume(site, name);
  if (!putVolume({ site, id }, `${node}:rpool/data`, name)) return undefined;
  const used = text.replace(line, `scsi9: local-zfs:${name},size=1G`);
  site.model.writeGuestFile(node, Number(id), used);
  site.touched(id);
  return `uses the name ${name} of the firmware variables of ${id} for a disk`;
}

/** Somebody attaches a disk of their own that is named like saved memory. */
function attachNamedMemory({ site, id }: FoundClaimed): string | undefined {
  const node = site.model.cluster.nodeOfGuest(Number(id));
  const text = site.text(id) ?? "";
  if (node === undefined || /^\[|^lock:|^scsi9:/m.test(text) || !/^scsi0:/m.test(text)) {
    return undefined;
  }
  const name = `vm-${id}-state-archive`;
  if (!putVolume({ site, id }, `${node}:rpool/data`, name)) return undefined;
  site.model.writeGuestFile(node, Number(id), `${text}scsi9: local-zfs:${name},size=1G\n`);
  site.touched(id);
  return `attaches the disk ${name} to ${id}`;
}

/** Somebody attaches a volume of their own where the first disk of a new machine is to be. */
function fillEmptySlot({ site, id }: FoundClaimed, dice: Dice): string | undefined {
  const node = site.model.cluster.nodeOfGuest(Number(id));
  const text = site.text(id) ?? "";
  if (node === undefined || !lacksDisks(site, id)) return undefined;
  const name = `vm-${id}-put-${dice.between(0, 3)}`;
  if (!putVolume({ site, id }, `${node}:rpool/data`, name)) return undefined;
  site.model.writeGuestFile(node, Number(id), `${text}scsi0: local-zfs:${name},size=1G\n`);
  site.touched(id);
  return `puts ${name} in the place where the first disk of ${id} is to be`;
}

/** A machine that was created and has no disk yet; whoever works on it may change it. */
export function lacksDisks(site: Site, id: string): boolean {
  return !/^\[|^lock:|^(?:scsi|sata|virtio)\d+:/m.test(site.text(id) ?? "lock: gone");
}

/** Somebody who put a volume of their own into the slot of a disk removes Berth's, unused now. */
function removeReplaced({ site, id, isClaimed }: FoundClaimed): string | undefined {
  const node = site.model.cluster.nodeOfGuest(Number(id));
  const text = site.text(id) ?? "";
  if (node === undefined || /^\[|^lock:/m.test(text) || !/^scsi\d+: \S+-put-/m.test(text)) {
    return undefined;
  }
  const unused = [...text.matchAll(/^unused\d: local-zfs:(\S+)\n/gm)];
  const [line, name = ""] = unused.find(([, volume = ""]) => isClaimed(volume)) ?? [];
  if (line === undefined) return undefined;
  takeVolume(site, name);
  site.model.writeGuestFile(node, Number(id), text.replace(line, ""));
  site.touched(id);
  return `removes ${name} of ${id}, which was replaced`;
}

/** Somebody puts a disk of Berth's into another slot. */
function moveToOtherSlot(found: FoundClaimed, dice: Dice): string | undefined {
  const disk = anyDisk(found, dice);
  if (disk === undefined || !found.isClaimed(disk.volume.name)) return undefined;
  const { text, line, volume } = disk;
  if (/^scsi8:/m.test(text)) return undefined;
  write(disk, text.replace(line, line.replace(/^scsi\d+:/, "scsi8:")));
  return `puts the disk ${volume.name} of ${found.id} into scsi8`;
}

function resize({ site, node }: FoundDisk, name: string, sizeBytes: number): void {
  const volumes = site.model.cluster.state.volumes[`${node}:rpool/data`] ?? [];
  const volume = volumes.find((one) => one.name === name);
  if (volume !== undefined) volume.sizeBytes = sizeBytes;
}

/** As a remedy asks for it: what is in a slot goes to another one, or becomes unused. */
export function moveSlot({ site, id }: Found, from: string, to?: string): void {
  const node = site.model.cluster.nodeOfGuest(Number(id));
  const text = site.text(id) ?? "";
  const [line, volume = "", rest = ""] =
    new RegExp(`^${from}: ([^,\n]+)(.*)$`, "m").exec(text) ?? [];
  const unused = freeUnused(text);
  if (node === undefined || line === undefined || unused === undefined) return;
  const moved = to === undefined ? `${unused}: ${volume}` : `${to}: ${volume}${rest}`;
  site.model.writeGuestFile(node, Number(id), text.replace(line, moved));
  site.touched(id);
}

/** Takes the line of a detached disk out of the file of its machine. */
export function forgetUnused({ site, id }: Found, name: string): void {
  const node = site.model.cluster.nodeOfGuest(Number(id));
  const lines = (site.text(id) ?? "").split("\n");
  const kept = lines.filter((line) => !/^unused\d+:/.test(line) || !line.endsWith(`:${name}`));
  if (node !== undefined) site.model.writeGuestFile(node, Number(id), kept.join("\n"));
}

/** Somebody makes a disk larger. */
function growDisk(found: Found, dice: Dice): string | undefined {
  const disk = anyDisk(found, dice);
  const size = /size=(\d+)G/.exec(disk?.line ?? "")?.[1];
  if (disk === undefined || size === undefined) return undefined;
  const { text, line, volume } = disk;
  const grown = Number(size) + 1;
  volume.sizeBytes = grown * 1024 ** 3;
  write(disk, text.replace(line, line.replace(`size=${size}G`, `size=${grown}G`)));
  return `makes the disk ${volume.name} of ${found.id} larger`;
}

/** Somebody gives the volume of a disk another name. */
function renameDisk(found: Found, dice: Dice): string | undefined {
  const disk = anyDisk(found, dice);
  if (disk === undefined) return undefined;
  const { site, id, text, volume } = disk;
  const old = volume.name;
  const name = `vm-${id}-disk-${dice.between(5, 8)}`;
  if ([...site.guestVolumes()].some((other) => other.name === name)) return undefined;
  volume.name = name;
  write(disk, text.replaceAll(`:${old},`, `:${name},`));
  return `gives the volume ${old} of ${id} the name ${name}`;
}

/** Any disk that lies beside its machine; none of one that somebody holds or keeps snapshots of. */
function anyDisk({ site, id }: Found, dice: Dice): FoundDisk | undefined {
  const node = site.model.cluster.nodeOfGuest(Number(id));
  const text = site.text(id) ?? "";
  if (node === undefined || /^\[|^lock:/m.test(text)) return undefined;
  const [line, name] =
    dice.pickAny([...text.matchAll(/^scsi\d+: local-zfs:([^,\n]+),.*$/gm)]) ?? [];
  const volumes = site.model.cluster.state.volumes[`${node}:rpool/data`] ?? [];
  const volume = volumes.find((one) => one.name === name);
  if (line === undefined || volume === undefined) return undefined;
  return { site, id, node, text, line, volume };
}

function write({ site, id, node }: FoundDisk, text: string): void {
  site.model.writeGuestFile(node, Number(id), text);
  site.touched(id);
}
