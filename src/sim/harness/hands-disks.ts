import type { Dice } from "./dice.ts";
import type { Site } from "./site.ts";

/** A machine, and where it is. */
export interface Found {
  readonly site: Site;
  readonly id: string;
}

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
export const diskHands = { detachDisk, growDisk, renameDisk } as const;

/**
 * Somebody takes a disk off a machine: its volume stays with it, unused. Of a volume that was given
 * another name since Berth looked nobody could tell any more which disk it was.
 */
function detachDisk(found: FoundClaimed, dice: Dice): string | undefined {
  const disk = anyDisk(found, dice);
  if (disk === undefined || !found.isClaimed(disk.volume.name)) return undefined;
  const { text, line, volume } = disk;
  const free = [0, 1, 2, 3].find((place) => !new RegExp(`^unused${place}:`, "m").test(text));
  if (free === undefined) return undefined;
  write(disk, text.replace(line, `unused${free}: local-zfs:${volume.name}`));
  return `detaches the disk ${volume.name} of ${found.id}`;
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
  site.touched();
}
