import type { ClaimSpec } from "../../api/index.ts";
import type { Leftover, Machine, SeenVolume } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { jsonEqual } from "../../kernel/json.ts";
import type { Declared, PlanInput } from "./next.ts";

type ClaimVolume = NonNullable<ClaimSpec["volumes"]>[number];

/**
 * What the Claim does not know yet of a machine whose mark was read back. It is written down before
 * anything else is done: what is not in the Claim is not ours to delete.
 */
export function claimChange(
  { declared, nowMs }: PlanInput,
  claim: ClaimSpec,
  machine: Machine,
): Partial<ClaimSpec> | undefined {
  const change: Partial<ClaimSpec> = {};
  if (claim.state === "Reserved") change.state = "Bound";
  if (claim.node !== machine.node) change.node = machine.node;
  const volumes = knownVolumes(declared, claim, machine).map((volume) => dated(volume, nowMs));
  if (!jsonEqual(volumes, claim.volumes ?? [])) change.volumes = volumes;
  const comingDisks = stillComing(declared, { ...claim, volumes }, machine);
  if (!jsonEqual(comingDisks, claim.comingDisks ?? [])) change.comingDisks = comingDisks;
  return Object.keys(change).length > 0 ? change : undefined;
}

/**
 * Whether a spec has named the disk, as the ledger knows it. The mark alone is not enough: after
 * the restoration of an old backup it names disks that neither the spec nor the ledger knows, and
 * what is taken for a removed entry would be the newest disk of a running machine.
 */
export function isEverDeclared(claim: ClaimSpec, disk: string): boolean {
  return isSeen(claim, disk) || claim.comingDisks?.includes(disk) === true;
}

/** What becomes of it was said when it was seen: so a spec named it. */
function isSeen({ volumes = [] }: ClaimSpec, name: string): boolean {
  return volumes.some(({ disk, onDelete }) => disk === name && onDelete !== undefined);
}

/** Disks that may be made at any moment, noted before anything is sent, until they are seen. */
function stillComing(declared: Declared, claim: ClaimSpec, { mark }: Machine): string[] {
  const { comingDisks = [] } = claim;
  const named = declared.isDeleting ? [] : declared.disks.map(({ name }) => name);
  const begun = comingDisks.filter((name) => name in (mark?.disks ?? {}));
  return [...new Set([...begun, ...named])].filter((name) => !isSeen(claim, name)).toSorted();
}

/** The Claim's volumes with those that were made under its mark and that nothing refers to. */
export function withLeftovers(
  { volumes = [] }: ClaimSpec,
  leftovers: readonly Leftover[],
): ClaimVolume[] | undefined {
  // A listing may name a volume twice, and the Claim names each once.
  const named = new Set(volumes.map(({ id }) => id));
  const found = leftovers
    .filter(({ proof }) => proof === "MadeUnderMark")
    .filter(({ volume }) => !named.has(volume) && named.add(volume))
    .map(({ volume: id, storage, sizeBytes }): ClaimVolume => {
      return { id, role: "Disk", storage, state: "Detached", size: String(sizeBytes) };
    });
  return found.length === 0 ? undefined : [...volumes, ...found];
}

/** All that goes with a machine: what the Claim, its mark or its own leftovers name. */
export function namedVolumes(
  claim: ClaimSpec,
  machine: Machine,
  leftovers: readonly Leftover[],
): ClaimVolume[] {
  const volumes = withLeftovers(claim, leftovers) ?? claim.volumes ?? [];
  const added = machine.volumes
    .filter(({ id, isOwn }) => isOwn && !volumes.some((volume) => volume.id === id))
    .filter(({ role, disk }) => role !== "Disk" || disk !== undefined)
    .map(({ id, role, disk, storage, state }) => {
      return { id, role, storage, state, ...(disk === undefined ? {} : { disk }) };
    });
  return [...volumes, ...added];
}

/** Volumes that the Claim knows already, as they are now, and those that are new. */
function knownVolumes(declared: Declared, claim: ClaimSpec, machine: Machine): ClaimVolume[] {
  const old = claim.volumes ?? [];
  const taken = Object.values(declared.takes ?? {});
  const said = onDeleteSaid(declared, claim);
  const describe = (volume: ClaimVolume, sizeBytes: number | undefined): ClaimVolume => {
    return described(volume, said, sizeBytes);
  };
  const anew: ClaimVolume[] = [];
  const kept = old.flatMap((volume): ClaimVolume[] => {
    const seen = machine.volumes.find(({ id }) => id === volume.id);
    // What was in its memory goes with every resume, and gets another name with every suspend.
    if (seen === undefined) return volume.role === "State" ? [] : [volume];
    const now = describe({ ...asSeen(volume, seen), state: seen.state }, seen.sizeBytes);
    if (now.disk === volume.disk || volume.disk === undefined) return [now];
    anew.push(now);
    return [];
  });
  const added = machine.volumes
    .filter(({ id, isOwn }) => isOwn || taken.includes(id))
    .filter(({ id }) => !old.some((volume) => volume.id === id))
    // A disk that no spec ever named is a person's.
    .filter(({ role, disk }) => role !== "Disk" || disk !== undefined)
    .map(({ id, role, disk, storage, state, sizeBytes }) => {
      const volume = { id, role, storage, state, ...(disk === undefined ? {} : { disk }) };
      return describe(volume, sizeBytes);
    });
  // The first disk is the one that the machine boots from: what has its name now is the newest.
  return [...kept, ...added, ...anew];
}

/**
 * A hypervisor gives the name of a volume that was removed to the next one: what is there now is
 * what it is seen to be, and what was said of the other does not hold for it.
 */
function asSeen(volume: ClaimVolume, { disk, role }: SeenVolume): ClaimVolume {
  if (disk === undefined || disk === volume.disk) return volume;
  // A name that leads to nothing: what it stood for was handed over.
  if (volume.disk === undefined && volume.onDelete === "Delete") return volume;
  const { onDelete: _onDelete, since: _since, ...rest } = volume;
  return { ...rest, disk, role };
}

/** An entry that says Absent speaks of the disk that was there, and of no other of its name. */
function onDeleteSaid(declared: Declared, claim: ClaimSpec): Declared["onDelete"] {
  const { onDelete, absentDisks = [] } = declared;
  const said = Object.entries(onDelete).filter(([name]) => {
    return !absentDisks.includes(name) || isEverDeclared(claim, name);
  });
  return Object.fromEntries(said);
}

function described(
  volume: ClaimVolume,
  said: Declared["onDelete"],
  sizeBytes: number | undefined,
): ClaimVolume {
  const onDelete = volume.disk === undefined ? undefined : said[volume.disk];
  return {
    ...volume,
    ...(onDelete === undefined ? {} : { onDelete }),
    ...(sizeBytes === undefined ? {} : { size: String(sizeBytes) }),
  };
}

/** A disk that was detached says since when. */
function dated({ since, ...volume }: ClaimVolume, nowMs: number): ClaimVolume {
  if (volume.state === "Attached" || volume.disk === undefined) return volume;
  return { ...volume, since: since ?? formatTime(nowMs) };
}
