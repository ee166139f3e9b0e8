import type { Claim, ClaimSpec } from "../../api/index.ts";
import { imageChecksum, isFollowed, recordedSizes, seedIdentity } from "../../hypervisor/index.ts";
import type {
  Lock,
  Machine,
  Mark,
  Seen,
  Survey,
  SurveyedFile,
  SurveyedMachine,
  SurveyedVolume,
} from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import { isHeld } from "../claims/index.ts";
import { awaitedVolumes } from "./awaited.ts";
import { fileFind, huskFind, lockFind, machineFind, volumeFind } from "./evidence.ts";
import type { Find } from "./find.ts";
import { holdersLeft, isDiskHolder, isHolding } from "./holders.ts";

/** All that a sweep rests on. */
export interface SweepInput {
  readonly survey: Survey;
  readonly installation: string;
  /** Every Claim on the system. */
  readonly claims: readonly Claim[];
  /** Whether the very object that a Claim names is there. */
  readonly isDeclared: (claim: ClaimSpec) => boolean;
  /** Identities that objects say are theirs, whatever the ledger says. */
  readonly identities: ReadonlySet<string>;
  /** What was seen under Claims whose machine had to be proven, by external id. */
  readonly seen: ReadonlyMap<string, Seen>;
  /** Every Claim of a file on the system, and whether the very VMImage that it names is there. */
  readonly files?: readonly Claim[];
  readonly isFileDeclared?: (claim: ClaimSpec) => boolean;
  /** Names of image files that any VMImage means. */
  readonly imageFiles: ReadonlySet<string>;
  /** Volumes that declared machines take as their disks. */
  readonly taken: ReadonlySet<string>;
  /** Who waits for the volumes of an id to go, by the id. */
  readonly blocked: ReadonlyMap<string, readonly string[]>;
  /** Whether locks of ours can be cleared here. */
  readonly mayUnlock: boolean;
}

/**
 * What nothing declares, with whose it is. Pure. What is declared, let go, or not provably of this
 * installation is not among it, save volumes and files of which nobody can tell.
 */
export function planFinds(input: SweepInput): Find[] {
  const ledger = new Map(input.claims.map((claim) => [claim.spec.externalId, claim]));
  const { machines, volumes, files } = input.survey;
  return distinct([
    ...machines.flatMap((machine) => machineFinds(input, machine, ledger.get(machine.externalId))),
    ...volumes.flatMap((volume) => volumeFinds(input, volume, ledger.get(volume.externalId))),
    ...files.flatMap((file) => fileFinds(input, file)),
  ]);
}

/** Claims under which something has to be proven before it can be judged. */
export function claimsInDoubt({ survey, claims, isDeclared }: SweepInput): Claim[] {
  const there = new Map(survey.machines.map((machine) => [machine.externalId, machine]));
  return claims.filter(({ spec }) => {
    const machine = there.get(spec.externalId);
    if (machine === undefined || machine.content === "Other") return false;
    if (isHeld(spec)) return !isDeclared(spec) || (isLocked(machine) && !isDiskHolder(spec));
    return spec.state === "Released" && machine.content === "Husk";
  });
}

/**
 * Claims whose machine was let go, as its mark says, while nobody is left to let them go: their
 * object is gone, and so is the Orphan that was to be adopted. Pure.
 */
export function claimsLetGo({ claims, seen, isDeclared }: SweepInput): Claim[] {
  return claims.filter(({ spec }) => {
    const sight = seen.get(spec.externalId);
    const isMarkedSo = sight?.at === "foreign" && sight.reason === "Released";
    return isMarkedSo && isHeld(spec) && guard("orphan-release-undeclared", !isDeclared(spec));
  });
}

/** What sleeps bears a lock for as long as it does: that is nobody's work. */
function isLocked({ lock, power }: SurveyedMachine): boolean {
  return lock !== undefined && power !== "Suspended";
}

function machineFinds(
  input: SweepInput,
  machine: SurveyedMachine,
  claim: Claim | undefined,
): Find[] {
  if (machine.content === "Other") return [];
  if (claim !== undefined && isHeld(claim.spec)) return heldFinds(input, machine, claim);
  if (machine.content === "Husk") return huskFinds(input, machine, claim);
  const { mark } = machine;
  if (mark === undefined || !isOurMark(input, machine, mark)) return [];
  const isLeft = guard("orphan-not-released", !isLetGo(claim, mark));
  return isLeft ? [machineFind(machine, { ownership: "Marked", mark })] : [];
}

/** A person let it go, or forgot it: whatever its mark still says, it is no orphan. */
function isLetGo(claim: Claim | undefined, { identity }: Mark): boolean {
  if (claim === undefined || claim.spec.state !== "Released") return false;
  return claim.spec.everExisted && claim.spec.identity === identity;
}

/** The mark of this installation on the very machine that it was made for. A copy is a person's. */
function isOurMark(
  { installation, identities }: SweepInput,
  { externalId, identity }: SurveyedMachine,
  mark: Mark,
): boolean {
  return (
    guard("orphan-marker-of-installation", mark.installation === installation) &&
    guard("orphan-marker-owned", mark.state === "Owned") &&
    guard("orphan-marker-of-this-id", mark.externalId === externalId) &&
    guard("orphan-marker-of-this-vm", mark.identity === identity) &&
    guard("orphan-marker-undeclared", !identities.has(mark.identity))
  );
}

/** A Claim that somebody holds, or held: its object is there or not. */
function heldFinds(input: SweepInput, machine: SurveyedMachine, claim: Claim): Find[] {
  const { spec } = claim;
  const seen = input.seen.get(spec.externalId);
  if (input.isDeclared(spec)) {
    // Its object sees to everything but a lock that is in nobody's way yet.
    const lock = seen?.at === "ours" ? seen.machine.lock : undefined;
    return lock?.state === "Dead" ? [lockFind(machine, claim, lock)] : [];
  }
  return leftFinds(input, machine, claim);
}

/** What is claimed for an object that is gone. A disk-holder VM that holds disks is released. */
function leftFinds(input: SweepInput, machine: SurveyedMachine, claim: Claim): Find[] {
  const { spec } = claim;
  const seen = input.seen.get(spec.externalId);
  if (isDiskHolder(spec) && holdersLeft({ ...input, claims: [claim] }).some(isHolding)) return [];
  if (seen?.at === "ours") {
    const { machine: whole } = seen;
    const { mark, power, lock } = whole;
    const found = { ...machine, power, identity: spec.identity };
    const sizeBytes = ownBytes(whole);
    const ownership = ownershipBy(spec);
    return [machineFind({ ...found, sizeBytes }, { ownership, claim, mark, lock })];
  }
  if (seen?.at === "opaque") return deadHusk(input, machine, { claim, lock: seen.lock });
  // Its Claim is held for as long as it is there, so somebody has to hear of it.
  const isInDoubt = seen?.at === "foreign" && seen.reason === "Husk";
  return isInDoubt ? [huskFind(machine, { claim, mayUnlock: false })] : [];
}

/** What goes with it: a volume of another id that it holds is not freed. */
export function ownBytes({ volumes }: Machine): number {
  return volumes.reduce((sum, { sizeBytes = 0, isOwn }) => sum + (isOwn ? sizeBytes : 0), 0);
}

/** An empty reservation that was given up: the Claim goes on saying where it is. */
function huskFinds(input: SweepInput, machine: SurveyedMachine, claim: Claim | undefined): Find[] {
  if (claim === undefined || claim.spec.state !== "Released") return [];
  const seen = input.seen.get(claim.spec.externalId);
  if (seen?.at === "opaque") return deadHusk(input, machine, { claim, lock: seen.lock });
  const isInDoubt = seen?.at === "foreign" && seen.reason === "Husk" && !claim.spec.everExisted;
  return isInDoubt ? [huskFind(machine, { claim, mayUnlock: false })] : [];
}

/** As long as somebody may be at work on it, it is not judged. */
function deadHusk(
  { mayUnlock }: SweepInput,
  machine: SurveyedMachine,
  { claim, lock }: { readonly claim: Claim; readonly lock: Lock },
): Find[] {
  const isDead = guard("orphan-placeholder-dead-lock", lock.state === "Dead");
  return isDead ? [huskFind(machine, { claim, lock, mayUnlock })] : [];
}

function volumeFinds(input: SweepInput, volume: SurveyedVolume, claim: Claim | undefined): Find[] {
  if (!guard("orphan-volume-not-taken", !input.taken.has(volume.volume))) return [];
  const blocks = input.blocked.get(volume.externalId) ?? [];
  // Of a retired Claim nothing was left: what appears late under its names is reported.
  const knowing = input.claims.find(({ spec }) => {
    return spec.state !== "Quarantined" && names(spec, volume);
  });
  if (knowing !== undefined) {
    // Declared, or let go with its machine; or its object is gone and only the ledger knows it.
    const isOurs = isStranded(input, knowing.spec, volume);
    const ownership = isOwnRecorded(knowing.spec, volume)
      ? ownershipBy(knowing.spec)
      : "Unattributed";
    return guard("orphan-volume-stranded", isOurs)
      ? [volumeFind(volume, { ownership, claim: knowing, blocks })]
      : [];
  }
  const suspect = probableFind(input, volume, blocks);
  if (suspect !== undefined) return [suspect];
  const isSeenTo = isSeenToByObject(input, volume, claim);
  return guard("orphan-volume-unattended", !isSeenTo) ? [volumeFind(volume, { blocks })] : [];
}

/** The object of a VM that is being made or unmade sees to its own volumes, on its own node. */
function isSeenToByObject(
  { isDeclared }: SweepInput,
  { vmNode }: SurveyedVolume,
  claim: Claim | undefined,
): boolean {
  if (vmNode !== undefined || claim === undefined) return false;
  return isHeld(claim.spec) && isDeclared(claim.spec);
}

/** What a failed operation probably left, whether or not its VM exists and is declared. */
function probableFind(
  { claims }: SweepInput,
  volume: SurveyedVolume,
  blocks: readonly string[],
): Find | undefined {
  for (const claim of claims) {
    const probable = suspected(claim.spec, volume);
    if (probable === undefined) continue;
    return volumeFind(volume, {
      ownership: "Probable",
      claim,
      blocks,
      evidence: probable.evidence,
    });
  }
  return undefined;
}

type ProbableVolume = NonNullable<ClaimSpec["probableVolumes"]>[number];

export function suspected(
  { probableVolumes = [] }: ClaimSpec,
  { volume, node, isShared, sizeBytes }: SurveyedVolume,
): ProbableVolume | undefined {
  const found = probableVolumes.find((one) => one.id === volume && (isShared || one.node === node));
  const isIt = Number(found?.size) === sizeBytes;
  return guard("orphan-probable-as-recorded", isIt) ? found : undefined;
}

/**
 * What a Claim proves. One that was reserved before its machine was made, or bound to it, is a
 * second witness beside the mark. One that is reserved for a machine that stood already was written
 * from that machine: for somebody who decided about it, or took it over, and did not get to the
 * end. It repeats the mark and proves nothing more.
 */
function ownershipBy({ state, everExisted }: ClaimSpec): "Ours" | "Marked" {
  return state === "Reserved" && everExisted ? "Marked" : "Ours";
}

function isStranded(
  { isDeclared }: SweepInput,
  claim: ClaimSpec,
  { volume }: SurveyedVolume,
): boolean {
  if (awaitedVolumes(claim).includes(volume)) return true;
  return isHeld(claim) && !isDeclared(claim);
}

/** What a configuration says of a size is rounded. */
const roundingBytes = 1024 ** 2;

/** A volume of another size than the Claim recorded is another one, which got the name later. */
function isRecorded({ volumes = [] }: ClaimSpec, { volume, sizeBytes }: SurveyedVolume): boolean {
  const sizes = recordedSizes(volumes.find(({ id }) => id === volume) ?? {});
  return sizes.length === 0 || sizes.some((size) => Math.abs(size - sizeBytes) < roundingBytes);
}

/** Whether it is the volume that the Claim recorded, and Berth's own. */
function isOwnRecorded(claim: ClaimSpec, volume: SurveyedVolume): boolean {
  const isSized = guard("orphan-volume-as-recorded", isRecorded(claim, volume));
  return isSized && guard("orphan-volume-not-followed", !isFollowedIn(claim, volume));
}

/** A volume that was only followed may be a person's: it goes when somebody types its id. */
function isFollowedIn({ volumes = [] }: ClaimSpec, { volume }: SurveyedVolume): boolean {
  return volumes.some((known) => known.id === volume && isFollowed(known));
}

/** On a storage that each node has for itself, the same id on another node is another volume. */
export function names(claim: ClaimSpec, volume: SurveyedVolume): boolean {
  const { volumes = [], node } = claim;
  if (isNamedBefore(claim, volume)) return true;
  const isHere = volume.isShared || node === undefined || node === volume.node;
  if (!guard("orphan-volume-on-its-node", isHere)) return false;
  return volumes.some(({ id }) => id === volume.volume);
}

/** Berth chose its name, and wrote it into the Claim before it was made. */
function isNamedBefore({ allocation }: ClaimSpec, volume: SurveyedVolume): boolean {
  if (allocation === undefined) return false;
  const { volume: named, earlier = [], node } = allocation;
  const isIts = volume.volume === named || earlier.includes(volume.volume);
  return isIts && guard("orphan-named-on-its-node", volume.isShared || node === volume.node);
}

function fileFinds(input: SweepInput, file: SurveyedFile): Find[] {
  const identity = seedIdentity(file.fileName);
  if (identity === undefined) {
    return imageFinds(input, file);
  }
  if (!guard("orphan-seed-ejected", !isInDrive(input, file))) return [];
  if (!guard("orphan-seed-of-nobody", !input.identities.has(identity))) return [];
  const claim = input.claims.find(({ spec }) => spec.identity === identity);
  if (claim === undefined) return [fileFind(file, { identity })];
  if (!guard("orphan-seed-undeclared", !input.isDeclared(claim.spec))) return [];
  return [fileFind(file, { ownership: ownershipBy(claim.spec), identity, claim })];
}

/** A file of which the ledger says that Berth brought it, or whose name looks so. */
function imageFinds(
  { files = [], imageFiles, isFileDeclared }: SweepInput,
  file: SurveyedFile,
): Find[] {
  if (imageFiles.has(file.fileName) || imageChecksum(file.fileName) === undefined) return [];
  const claim = files.find(({ spec }) => isClaimOf(spec, file));
  if (claim === undefined) return [fileFind(file, {})];
  // Its VMImage removes it, or it was released.
  const isLeft = isHeld(claim.spec) && isFileDeclared?.(claim.spec) !== true;
  const ownership = claim.spec.state === "Bound" ? "Ours" : "Unattributed";
  return guard("orphan-file-undeclared", isLeft) ? [fileFind(file, { ownership, claim })] : [];
}

function isClaimOf(
  { file, node }: ClaimSpec,
  { fileName, storage, ...seen }: SurveyedFile,
): boolean {
  const isHere = file?.storage === storage && (node === undefined || node === seen.node);
  return isHere && file.name === fileName;
}

/** Whoever's machine that is, and whatever it does: it is found when it was ejected. */
function isInDrive({ survey }: SweepInput, { volume }: SurveyedFile): boolean {
  return survey.machines.some(({ discs }) => discs?.includes(volume) === true);
}

/**
 * Storages that only their node sees may hold volumes of the same id on several nodes. Which of
 * them a person means by the id nobody can tell, so nothing can be decided but to keep them.
 */
function distinct(finds: readonly Find[]): Find[] {
  const byId = new Map<string, Find>();
  for (const find of finds) {
    const key = `${find.kind} ${find.externalId}`;
    const other = byId.get(key);
    byId.set(key, other === undefined ? find : together(other, find));
  }
  return [...byId.values()];
}

function together(first: Find, { node }: Find): Find {
  const evidence = [...first.evidence, `There is another of the same id on ${node}.`];
  return { ...first, evidence, allowed: ["Keep"], ownership: "Unattributed" };
}
