import type { Claim } from "../../api/index.ts";
import type {
  Lock,
  Mark,
  SurveyedFile,
  SurveyedMachine,
  SurveyedVolume,
} from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { guard } from "../../kernel/guard.ts";
import { defined } from "../failures/index.ts";
import type { Decision, Find, Ownership } from "./find.ts";

interface MachineProof {
  readonly ownership: Ownership;
  readonly claim?: Claim | undefined;
  readonly mark?: Mark | undefined;
  readonly lock?: Lock | undefined;
}

/** A machine of this installation that no object declares. */
export function machineFind(machine: SurveyedMachine, proof: MachineProof): Find {
  const { externalId, node, power, identity, sizeBytes } = machine;
  const { ownership, claim, mark, lock } = proof;
  const isStopped = power === "Stopped";
  const mayDestroy =
    guard("orphan-destroy-stopped", isStopped) &&
    guard("orphan-destroy-no-work", lock?.state !== "Held");
  const destroy: Decision[] = mayDestroy ? ["Destroy"] : [];
  return defined<Find>({
    kind: "Machine",
    externalId,
    node,
    ownership,
    evidence: machineEvidence(machine, proof),
    allowed: ["Keep", "Adopt", ...destroy],
    identity: identity ?? mark?.identity,
    claim: claim?.metadata.name,
    mark,
    power,
    sizeBytes,
    command: lock?.state === "Dead" ? lock.remedy : undefined,
    blocks: [],
  });
}

function machineEvidence(
  { name, power }: SurveyedMachine,
  { ownership, claim, mark, lock }: MachineProof,
): string[] {
  const owner = mark === undefined ? "" : `${mark.owner.namespace}/${mark.owner.name}`;
  return [
    `Its mark says that this installation made it for ${owner}, and agrees with its identity.`,
    claim === undefined
      ? "No Claim knows it: it may have been lost with an old backup."
      : claimEvidence(claim, ownership, "agrees"),
    ...(name === undefined ? [] : [`Its name on the hypervisor is ${name}.`]),
    ...(lock === undefined ? [] : lockEvidence(lock)),
    ...(power === "Stopped" ? [] : [`It is ${power.toLowerCase()}: stop it to destroy it.`]),
  ];
}

/** What a Claim adds. One that was written from the mark adds nothing. */
function claimEvidence({ metadata: { name = "" } }: Claim, by: Ownership, says: string): string {
  const fact = `The Claim ${name} ${says}, and its object is gone.`;
  return by === "Ours" ? fact : `${fact} It was written from the mark, and proves nothing more.`;
}

/** A Claim may name a volume of this id and not this one. */
function namedEvidence(claim: Claim, ownership: Ownership): string {
  const { name = "" } = claim.metadata;
  return ownership === "Unattributed"
    ? `The Claim ${name} names a volume of this id with another size: this is not that volume.`
    : claimEvidence(claim, ownership, "names it");
}

interface HuskProof {
  readonly claim: Claim;
  /** The lock of work that is proven ours; absent: nothing proves it. */
  readonly lock?: Lock;
  readonly mayUnlock: boolean;
}

/** An empty reservation. It holds no data, and blocks only its id. */
export function huskFind(machine: SurveyedMachine, { claim, lock, mayUnlock }: HuskProof): Find {
  const { externalId, node } = machine;
  const name = claim.metadata.name ?? "";
  const isOurs = lock !== undefined;
  return defined<Find>({
    kind: "Husk",
    externalId,
    node,
    ownership: isOurs ? "Ours" : "Unattributed",
    evidence: [
      `Nothing is in it but its lock${machine.lock === undefined ? "" : ` (${machine.lock})`}.`,
      `The Claim ${name} had reserved this id.`,
      ...(isOurs ? lockEvidence(lock) : ["No work of ours is known that would have made it."]),
    ],
    allowed: guard("orphan-placeholder-ours", isOurs) && mayUnlock ? ["Keep", "Destroy"] : ["Keep"],
    claim: name,
    command: lock?.remedy,
    sizeBytes: 0,
    blocks: [],
  });
}

/** A lock on a declared machine, which no work holds any more. */
export function lockFind(machine: SurveyedMachine, claim: Claim, lock: Lock): Find {
  const { externalId, node } = machine;
  const { owner, identity } = claim.spec;
  return defined<Find>({
    kind: "Lock",
    externalId,
    node,
    ownership: "Ours",
    evidence: [`It is on the machine of ${owner.namespace}/${owner.name}.`, ...lockEvidence(lock)],
    allowed: ["Keep"],
    identity,
    claim: claim.metadata.name,
    command: lock.remedy,
    blocks: [],
  });
}

function lockEvidence({ detail, state, task, sinceMs, endedMs, end }: Lock): string[] {
  if (state !== "Dead") return [`It is locked (${detail}), and somebody may be at work on it.`];
  const since = sinceMs === undefined ? "" : ` since ${formatTime(sinceMs)}`;
  const ended = endedMs === undefined ? "" : ` at ${formatTime(endedMs)}`;
  return [
    `It is locked (${detail})${since}, by work of ours that is over.`,
    ...(task === undefined ? [] : [`The work was ${task}; it ended${ended}: ${end ?? "lost"}.`]),
  ];
}

interface VolumeProof {
  /** As its Claim proves it. */
  readonly ownership?: Ownership;
  readonly claim?: Claim;
  readonly blocks: readonly string[];
  /** Why it is probably ours, as the Claim keeps it. */
  readonly evidence?: readonly string[];
}

/** A volume whose VM does not exist or is on another node, and that no VM refers to. */
export function volumeFind(found: SurveyedVolume, proof: VolumeProof): Find {
  const { ownership = "Unattributed", claim, blocks } = proof;
  const { volume, storage, node, isShared, sizeBytes, createdMs } = found;
  const isProbable = ownership === "Probable";
  const evidence = isProbable
    ? ["No VM refers to the volume.", ...(proof.evidence ?? [])]
    : [unusedEvidence(found)];
  if (isProbable) {
    evidence.push("Nothing proves that it is Berth's: it is removed only if you approve it.");
  } else if (claim !== undefined) {
    evidence.push(namedEvidence(claim, ownership));
    if (isRetained(claim, volume)) evidence.push("Its disk says onDelete: Retain.");
  } else {
    evidence.push("No Claim names it: nothing says whose it is.");
    if (isShared) evidence.push("The storage is shared: another cluster may be using it.");
  }
  return defined<Find>({
    kind: "Volume",
    externalId: volume,
    node,
    storage,
    ownership,
    evidence,
    // What has to stay is refused whenever it is tried, by the policy as by a person.
    allowed: guard("orphan-volume-not-retained", !isRetained(claim, volume))
      ? ["Keep", "Destroy"]
      : ["Keep"],
    claim: claim?.metadata.name,
    sizeBytes,
    createdMs,
    blocks,
  });
}

function unusedEvidence({ externalId, node, vmNode }: SurveyedVolume): string {
  return vmNode === undefined
    ? `There is no machine ${externalId}, and no machine refers to the volume.`
    : `The VM ${externalId} is on ${vmNode}, the volume is on ${node}, and no VM refers to it.`;
}

function isRetained(claim: Claim | undefined, volume: string): boolean {
  const named = claim?.spec.volumes?.find(({ id }) => id === volume);
  return named?.onDelete === "Retain";
}

interface FileProof {
  /** As its Claim proves it. */
  readonly ownership?: Ownership;
  readonly claim?: Claim;
  readonly identity?: string;
}

/** A disc or an image under a name of Berth's, that nothing of this installation means. */
export function fileFind(file: SurveyedFile, proof: FileProof): Find {
  const { ownership = "Unattributed", claim, identity } = proof;
  const { volume, fileName, storage, node, isShared, sizeBytes, createdMs } = file;
  const isSeed = identity !== undefined;
  const evidence = [
    isSeed
      ? `It was made for the first boot of the machine ${identity}. It may hold secrets.`
      : "Its name carries a checksum, as that of an image that Berth brought.",
    claim === undefined
      ? "Nothing of this installation knows it: it may be another installation's."
      : claimEvidence(claim, ownership, "knows that machine"),
    ...(isShared ? ["The storage is shared: another cluster may be using it."] : []),
  ];
  return defined<Find>({
    kind: isSeed ? "ISO" : "Image",
    externalId: volume,
    node,
    storage,
    ownership,
    evidence,
    allowed: ["Keep", "Destroy"],
    identity,
    claim: claim?.metadata.name,
    fileName,
    sizeBytes,
    createdMs,
    blocks: [],
  });
}
