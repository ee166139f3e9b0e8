import type { Claim, ClaimSpec } from "../../api/index.ts";
import { imageChecksum, seedIdentity } from "../../hypervisor/index.ts";
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
import { isHeld } from "../claims/index.ts";
import { fileFind, huskFind, lockFind, machineFind, volumeFind } from "./evidence.ts";
import type { Find } from "./find.ts";

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
    if (machine === undefined || machine.content === "Other" || isKeeper(spec)) return false;
    if (isHeld(spec)) return !isDeclared(spec) || isLocked(machine);
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
    return isMarkedSo && isHeld(spec) && !isDeclared(spec);
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
  if (machine.content === "Other" || (claim !== undefined && isKeeper(claim.spec))) return [];
  if (claim !== undefined && isHeld(claim.spec)) return heldFinds(input, machine, claim);
  if (machine.content === "Husk") return huskFinds(input, machine, claim);
  const { mark } = machine;
  if (mark === undefined || !isOurMark(input, machine, mark)) return [];
  return isLetGo(claim, mark) ? [] : [machineFind(machine, { ownership: "Marked", mark })];
}

/** A person let it go, or forgot it: whatever its mark still says, it is no orphan. */
function isLetGo(claim: Claim | undefined, { identity }: Mark): boolean {
  if (claim === undefined || claim.spec.state !== "Released") return false;
  return claim.spec.everStood && claim.spec.identity === identity;
}

/** The mark of this installation on the very machine that it was made for. A copy is a person's. */
function isOurMark(
  { installation, identities }: SweepInput,
  { externalId, identity }: SurveyedMachine,
  mark: Mark,
): boolean {
  const isWhole = mark.externalId === externalId && mark.identity === identity;
  const isOurs = mark.installation === installation && mark.state === "Owned";
  return isOurs && isWhole && !identities.has(mark.identity);
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
  if (seen?.at === "ours") {
    const { machine: whole } = seen;
    const { mark, power, lock } = whole;
    const found = { ...machine, power, identity: spec.identity };
    const sizeBytes = ownBytes(whole);
    const ownership = ownershipBy(spec);
    return [machineFind({ ...found, sizeBytes }, { ownership, claim, mark, lock })];
  }
  return seen?.at === "opaque" ? deadHusk(input, machine, { claim, lock: seen.lock }) : [];
}

/** What goes with it: a volume of another id that it holds is not freed. */
function ownBytes({ volumes }: Machine): number {
  return volumes.reduce((sum, { sizeBytes = 0, isOwn }) => sum + (isOwn ? sizeBytes : 0), 0);
}

/** An empty reservation that was given up: the Claim goes on saying where it is. */
function huskFinds(input: SweepInput, machine: SurveyedMachine, claim: Claim | undefined): Find[] {
  if (claim === undefined || claim.spec.state !== "Released") return [];
  const seen = input.seen.get(claim.spec.externalId);
  if (seen?.at === "opaque") return deadHusk(input, machine, { claim, lock: seen.lock });
  const isInDoubt = seen?.at === "foreign" && seen.reason === "Husk" && !claim.spec.everStood;
  return isInDoubt ? [huskFind(machine, { claim, mayUnlock: false })] : [];
}

/** As long as somebody may be at work on it, it is not judged. */
function deadHusk(
  { mayUnlock }: SweepInput,
  machine: SurveyedMachine,
  { claim, lock }: { readonly claim: Claim; readonly lock: Lock },
): Find[] {
  return lock.state === "Dead" ? [huskFind(machine, { claim, lock, mayUnlock })] : [];
}

function volumeFinds(input: SweepInput, volume: SurveyedVolume, claim: Claim | undefined): Find[] {
  if (input.taken.has(volume.volume)) return [];
  const blocks = input.blocked.get(volume.externalId) ?? [];
  const knowing = input.claims.find(({ spec }) => names(spec, volume.volume));
  if (knowing !== undefined) {
    // Declared, or let go with its machine; or its object is gone and only the ledger knows it.
    const isOurs = isStranded(input, knowing.spec);
    const ownership = ownershipBy(knowing.spec);
    return isOurs ? [volumeFind(volume, { ownership, claim: knowing, blocks })] : [];
  }
  // The object of a machine that is being made or unmade sees to its own volumes.
  const isSeenTo = claim !== undefined && isHeld(claim.spec) && input.isDeclared(claim.spec);
  return isSeenTo ? [] : [volumeFind(volume, { blocks })];
}

/**
 * What a Claim proves. One that was reserved before its machine was made, or bound to it, is a
 * second witness beside the mark. One that is reserved for a machine that stood already was written
 * from that machine: for somebody who decided about it, or took it over, and did not get to the
 * end. It repeats the mark and proves nothing more.
 */
function ownershipBy({ state, everStood }: ClaimSpec): "Ours" | "Marked" {
  return state === "Reserved" && everStood ? "Marked" : "Ours";
}

function isStranded({ isDeclared }: SweepInput, claim: ClaimSpec): boolean {
  return isHeld(claim) && !isKeeper(claim) && !isDeclared(claim);
}

/** It holds disks that have to outlive their object: that the object is gone is what it is for. */
export function isKeeper({ role }: ClaimSpec): boolean {
  return role === "Keeper";
}

function names({ volumes = [] }: ClaimSpec, volume: string): boolean {
  return volumes.some(({ id }) => id === volume);
}

function fileFinds(input: SweepInput, file: SurveyedFile): Find[] {
  const identity = seedIdentity(file.fileName);
  if (identity === undefined) {
    const isMeant = input.imageFiles.has(file.fileName);
    return isMeant || imageChecksum(file.fileName) === undefined ? [] : [fileFind(file, {})];
  }
  if (input.identities.has(identity) || isInDrive(input, file)) return [];
  const claim = input.claims.find(({ spec }) => spec.identity === identity);
  if (claim === undefined) return [fileFind(file, { identity })];
  if (input.isDeclared(claim.spec)) return [];
  return [fileFind(file, { ownership: ownershipBy(claim.spec), identity, claim })];
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
