import type { ClaimSpec } from "../../api/index.ts";
import {
  isFollowed,
  isProvenVolume,
  type Leftover,
  type Machine,
  type SeenVolume,
} from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { guard } from "../../kernel/guard.ts";
import { jsonEqual } from "../../kernel/json.ts";
import type { Declared, PlanInput } from "./next.ts";
import { isBelievedGone } from "./other-volumes.ts";
import {
  isInPlace,
  isMadeAnew,
  isStillThat,
  judgeVolume,
  type Grounds,
} from "./volume-ownership.ts";

type ClaimVolume = NonNullable<ClaimSpec["volumes"]>[number];

/**
 * What the Claim does not know yet of a machine whose mark was read back. It is written down before
 * anything else is done: what is not in the Claim is not ours to delete.
 */
export function claimChange(
  input: PlanInput,
  claim: ClaimSpec,
  machine: Machine,
): Partial<ClaimSpec> | undefined {
  const { declared, nowMs, lastDone } = input;
  const change: Partial<ClaimSpec> = {};
  if (claim.state === "Reserved") change.state = "Bound";
  if (claim.node !== machine.node) change.node = machine.node;
  const volumes = knownVolumes(input, claim, machine).map((volume) => dated(volume, nowMs));
  if (!jsonEqual(volumes, claim.volumes ?? [])) change.volumes = volumes;
  const allocation = allocationNow(volumes, claim, { lastDone, nowMs });
  if (allocation !== undefined) change.allocation = allocation;
  Object.assign(change, othersChange(input, { ...claim, volumes }, machine));
  const expectedDisks = stillComing(declared, { ...claim, volumes }, machine);
  if (!jsonEqual(expectedDisks, claim.expectedDisks ?? [])) change.expectedDisks = expectedDisks;
  return Object.keys(change).length > 0 ? change : undefined;
}

/**
 * The allocation without what was seen of it; undefined: as it was. A name that Berth chose proves
 * nothing any more once the volume is among the Claim's own: people may rename that, and make
 * another in its place.
 */
function allocationNow(
  volumes: readonly ClaimVolume[],
  claim: ClaimSpec,
  { lastDone, nowMs }: Pick<PlanInput, "lastDone" | "nowMs">,
): ClaimSpec["allocation"] {
  const { allocation } = claim;
  if (allocation === undefined) return undefined;
  const isSettled = isMade(volumes, claim, lastDone);
  const isSeenNow = volumes.some(({ id }) => id === allocation.volume);
  if (!isSettled && !isSeenNow) return undefined;
  const { volume, ...rest } = allocation;
  return {
    ...rest,
    ...(volume === undefined || isSeenNow ? {} : { volume }),
    ...(isSettled ? { settledAt: formatTime(nowMs) } : {}),
  };
}

/**
 * Whether the open allocation has come to its end: its operation ended well, and the config names
 * what it made. The config alone does not show it: an operation may make several volumes, and a
 * worker that died after the first one leaves the next.
 */
function isMade(
  volumes: readonly ClaimVolume[],
  { allocation }: ClaimSpec,
  lastDone: PlanInput["lastDone"],
): boolean {
  if (allocation === undefined || allocation.settledAt !== undefined) return false;
  const isEndedWell = lastDone?.id === allocation.operation;
  if (!guard("allocation-ended-well", isEndedWell)) return false;
  return volumes.some(({ madeBy }) => madeBy === allocation.operation);
}

/**
 * Whether a spec has named the disk, as the ledger knows it. The mark alone is not enough: after
 * the restoration of an old backup it names disks that neither the spec nor the ledger knows, and
 * what is taken for a removed entry would be the newest disk of a running machine.
 */
export function isEverDeclared(claim: ClaimSpec, disk: string): boolean {
  return isSeen(claim, disk) || claim.expectedDisks?.includes(disk) === true;
}

/** What becomes of it was said when it was seen: so a spec named it. */
function isSeen({ volumes = [] }: ClaimSpec, name: string): boolean {
  return volumes.some(({ disk, onDelete }) => disk === name && onDelete !== undefined);
}

/** Disks that may be made at any moment, noted before anything is sent, until they are seen. */
function stillComing(declared: Declared, claim: ClaimSpec, { mark }: Machine): string[] {
  const { expectedDisks = [] } = claim;
  const named = declared.isDeleting ? [] : declared.disks.map(({ name }) => name);
  const begun = expectedDisks.filter((name) => name in (mark?.disks ?? {}));
  return [...new Set([...begun, ...named])].filter((name) => !isSeen(claim, name)).toSorted();
}

/** What proves a leftover that the Claim did not have among its volumes. */
const provenBy: Partial<Record<Leftover["proof"], "Named" | "TaskLog">> = {
  Named: "Named",
  TaskLogged: "TaskLog",
};

/** The Claim's volumes with those that were left behind and are proven otherwise. */
export function withLeftovers(
  { volumes = [] }: ClaimSpec,
  leftovers: readonly Leftover[],
): ClaimVolume[] | undefined {
  // A listing may name a volume twice, and the Claim names each once.
  const named = new Set(volumes.map(({ id }) => id));
  const found = leftovers
    .filter(({ proof }) => provenBy[proof] !== undefined)
    .filter(({ volume }) => !named.has(volume) && named.add(volume))
    .map(({ volume: id, storage, sizeBytes, proof: by }): ClaimVolume => {
      const proof = provenBy[by];
      const size = String(sizeBytes);
      const left = { id, role: "Disk", storage, state: "Detached", size } as const;
      return proof === undefined ? left : { ...left, proof };
    });
  return found.length === 0 ? undefined : [...volumes, ...found];
}

/**
 * All that goes with a machine whose object is gone: what the Claim, its leftovers or its marker
 * name, as far as it is proven. Where the Claim was made from the marker, a person asked for that.
 */
export function namedVolumes(
  claim: ClaimSpec,
  machine: Machine,
  leftovers: readonly Leftover[],
): ClaimVolume[] {
  const volumes = withLeftovers(claim, leftovers) ?? claim.volumes ?? [];
  const known = volumes.filter((volume) => {
    const seen = machine.volumes.find(({ id }) => id === volume.id);
    return seen === undefined || (isOfVm(volume) && isStillThat(volume, seen));
  });
  // One that is reserved for a VM that existed before has no volumes, because nobody recorded any.
  const isFromMarker =
    volumes.length === 0 &&
    guard("orphan-claim-from-marker", claim.state === "Reserved" && claim.everExisted);
  const added = machine.volumes
    .filter(({ id, isOwn }) => isOwn && !volumes.some((volume) => volume.id === id))
    .filter(({ role, disk }) => role !== "Disk" || disk !== undefined)
    .flatMap((seen): ClaimVolume[] => {
      if (isFromMarker) return [{ ...entryOf(seen), proof: "Recorded" }];
      return newEntries({ leftovers }, { claim, machine }, seen).filter(isOfVm);
    });
  return [...known, ...added];
}

/**
 * What was judged to be a person's is written down before anything is concluded from it: once
 * Berth's own volume is gone, nothing else tells the person's from a disk that somebody renamed.
 */
function othersChange(
  input: PlanInput,
  claim: ClaimSpec,
  machine: Machine,
): Pick<ClaimSpec, "otherVolumes"> {
  const { leftovers, open, declared, nowMs } = input;
  const { otherVolumes: known = [], volumes = [] } = claim;
  const isOurs = (id: string): boolean => volumes.some((volume) => volume.id === id);
  const isThere = (id: string): boolean => {
    const isUnknown = leftovers === undefined || open !== undefined || machine.hasSnapshots;
    const isListed = leftovers?.some(({ volume }) => volume === id) === true;
    return isUnknown || isListed || machine.volumes.some((volume) => volume.id === id);
  };
  // The name of one that is only believed to be gone is remembered as long as the VM exists.
  const kept = known.filter((one) => {
    return isBelievedGone(one) || (!isOurs(one.id) && isThere(one.id));
  });
  const strangers = machine.volumes
    .filter(({ id }) => !isOurs(id) && !kept.some((one) => one.id === id))
    .filter((seen) => seen.isOwn && (seen.disk !== undefined || seen.slot !== undefined))
    .filter((seen) => {
      return judgeVolume({ ...input, ...declared }, { claim, machine }, seen).is === "Strange";
    });
  const added = strangers.map(({ id }) => ({ id, seenAt: formatTime(nowMs) }));
  const otherVolumes = [...kept, ...added].slice(0, othersMax);
  return jsonEqual(otherVolumes, known) ? {} : { otherVolumes };
}

/** As many as a Claim holds. */
const othersMax = 256;

/** Saved memory is in a Claim only while the VM's own key names it. */
function isOfVm(volume: ClaimVolume): boolean {
  return volume.role === "State" || isProvenVolume(volume);
}

/** Volumes that the Claim knows already, as they are now, and those that are new. */
function knownVolumes(input: PlanInput, claim: ClaimSpec, machine: Machine): ClaimVolume[] {
  const { declared } = input;
  const { volumes: old = [] } = claim;
  const said = onDeleteSaid(declared, claim);
  const grounds = { ...input, ...declared };
  const anew = machine.volumes.filter((seen) => isMadeAnew(grounds, { claim, machine }, seen));
  const kept = old.flatMap((volume): ClaimVolume[] => {
    const seen = machine.volumes.find(({ id }) => id === volume.id);
    // What was in its memory goes with every resume, and gets another name with every suspend.
    if (volume.role === "State" && seen?.role !== "State") return [];
    if (seen === undefined) return [volume];
    return anew.includes(seen) ? [] : [described(asSeen(volume, seen), said)];
  });
  const taken = Object.values(declared.takes ?? {});
  const added = machine.volumes
    .filter(({ id, isOwn }) => isOwn || taken.includes(id))
    .filter(({ id }) => !old.some((volume) => volume.id === id))
    // A disk that no spec ever named is a person's.
    .filter(({ role, disk }) => role !== "Disk" || disk !== undefined);
  const fresh = [...added, ...anew].map((seen) => judged(grounds, { claim, machine }, seen));
  // The first disk is the one that the machine boots from: one that got another name keeps its
  // place, and what has a name now is the newest.
  const placed = kept.flatMap((volume): ClaimVolume[] => {
    const heir = fresh.find(({ was }) => was.at(-1) === volume.id);
    if (heir !== undefined) return heir.entries.map((entry) => described(entry, said));
    return fresh.some(({ was }) => was.includes(volume.id)) ? [] : [volume];
  });
  const isNew = ({ was }: { readonly was: readonly string[] }): boolean => {
    return !kept.some(({ id }) => id === was.at(-1));
  };
  return [
    ...placed,
    ...fresh.filter(isNew).flatMap(({ entries }) => entries.map((one) => described(one, said))),
  ];
}

type At = { readonly claim: ClaimSpec; readonly machine: Machine };

function newEntries(grounds: Grounds, at: At, seen: SeenVolume): ClaimVolume[] {
  return judged(grounds, at, seen).entries;
}

/** What the Claim is to say of a volume that it does not have, and which ones that was before. */
function judged(
  grounds: Grounds,
  at: At,
  seen: SeenVolume,
): { readonly entries: ClaimVolume[]; readonly was: readonly string[] } {
  const entry = entryOf(seen);
  const judgement = judgeVolume(grounds, at, seen);
  switch (judgement.is) {
    case "Ours": {
      const { madeBy, was } = judgement;
      const before = at.claim.volumes?.find(({ id }) => id === was.at(-1));
      const onDelete = before?.onDelete;
      const isFollowedOnly =
        staysFollowed(at.claim, seen) || hasStrangersName(at.claim, judgement, seen);
      const proof = isFollowedOnly ? "Followed" : judgement.proof;
      const more = { ...(onDelete && { onDelete }), ...(madeBy && { madeBy }) };
      return { entries: [{ ...entry, ...more, proof }], was };
    }
    case "Unproven":
      return { entries: [entry], was: [] };
    case "InDoubt":
    case "Strange": {
      // Saved memory is the VM's own by its key, and a cloud-init drive is made from the spec.
      const isOfVmItself = seen.role === "State" || seen.role === "CloudInit";
      return { entries: isOfVmItself ? [entry] : [], was: [] };
    }
  }
}

/** A copy of a disk that was only followed is no better known than that: Berth moved it. */
function staysFollowed({ volumes = [], allocation }: ClaimSpec, { disk }: SeenVolume): boolean {
  if (disk === undefined || allocation?.volume !== undefined) return false;
  return volumes.some((volume) => {
    return volume.disk === disk && !guard("moved-volume-not-followed", !isFollowed(volume));
  });
}

/**
 * A volume of ours has the automatic name that a stranger's had, which is only believed to be gone.
 * If that one was hidden and its storage is mounted again, the name leads to it, and no later time
 * proves the contrary: every write moves it. So it is used, and never destroyed.
 */
function hasStrangersName(
  { otherVolumes = [] }: ClaimSpec,
  { proof }: { readonly proof: ClaimVolume["proof"] },
  { id }: SeenVolume,
): boolean {
  // A declaration names what is taken over.
  const wasOthers = proof !== "Taken" && otherVolumes.some((one) => one.id === id);
  return !guard("made-volume-not-of-others", !wasOthers);
}

function entryOf({ id, role, disk, storage, state, sizeBytes }: SeenVolume): ClaimVolume {
  const size = sizeBytes === undefined ? {} : { size: String(sizeBytes) };
  return { id, role, storage, state, ...(disk === undefined ? {} : { disk }), ...size };
}

/**
 * A recorded volume as it is now. Only in the place of its disk is it made larger by anybody: what
 * has another size elsewhere is another volume under a name that was free.
 */
function asSeen(volume: ClaimVolume, seen: SeenVolume): ClaimVolume {
  const now = { ...withName(volume, seen), state: seen.state };
  const isSized = seen.sizeBytes !== undefined && isInPlace(now, seen) && isStillThat(now, seen);
  const { growsTo, ...rest } = now;
  const isGrown = isSized && (seen.sizeBytes ?? 0) >= Number(growsTo);
  return {
    ...(isGrown ? rest : now),
    ...(isSized ? { size: String(seen.sizeBytes) } : {}),
  };
}

/** One that had no disk's name is the disk in whose place it is. */
function withName(volume: ClaimVolume, { disk, role }: SeenVolume): ClaimVolume {
  if (disk === undefined || volume.disk !== undefined) return volume;
  // A name that leads to nothing: what it stood for was handed over.
  if (volume.onDelete === "Delete") return volume;
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

function described(volume: ClaimVolume, said: Declared["onDelete"]): ClaimVolume {
  const onDelete = volume.disk === undefined ? undefined : said[volume.disk];
  return { ...volume, ...(onDelete === undefined ? {} : { onDelete }) };
}

/** A disk that was detached says since when. */
function dated({ since, ...volume }: ClaimVolume, nowMs: number): ClaimVolume {
  if (volume.state === "Attached" || volume.disk === undefined) return volume;
  return { ...volume, since: since ?? formatTime(nowMs) };
}
