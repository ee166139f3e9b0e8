import { answered, failed } from "../../hypervisor/index.ts";
import type { Answer, ClaimedMachine, Failure, Leftover } from "../../hypervisor/index.ts";
import type { DriverContext } from "./context.ts";
import { judge } from "./identity.ts";
import { referencedVolumes } from "./references.ts";
import { listVolumes, nodeStorages, type NodeStorage, unlisted } from "./storages.ts";
import { nameWithoutStorage, parseVolume } from "./translate/volumes.ts";

/**
 * Volumes that bear the Claim's id and that the machine does not refer to, as the Claim's node
 * sees them. A storage that cannot be read now makes the answer a failure, not a shorter list.
 */
export async function findLeftovers(
  context: DriverContext,
  claim: ClaimedMachine,
): Promise<Answer<readonly Leftover[]>> {
  const { node, externalId } = claim;
  if (node === undefined) return failed(noNode(externalId));
  const machine = await standing(context, claim, node);
  if (!machine.ok) return machine;
  const storages = await nodeStorages(context.api, node);
  if (!storages.ok) return storages;
  const found: Leftover[] = [];
  for (const storage of storages.value.filter((candidate) => mayHold(candidate, claim))) {
    const here = await onStorage(context, { claim, node, storage, machine: machine.value });
    if (!here.ok) return here;
    found.push(...here.value);
  }
  const taken = await takenVolumes(context, { claim, node }, machine.value);
  if (!taken.ok) return taken;
  const all = [...found, ...taken.value];
  return answered(isKeptMissing(claim, machine.value, all) ? all.map(inDoubt) : all);
}

/**
 * A hand-over that was cut short may have renamed a volume that no machine refers to yet. So while
 * one that has to stay is nowhere to be found, every volume that the Claim does not name may be it.
 */
function isKeptMissing(
  { volumes = [] }: ClaimedMachine,
  { referenced }: Standing,
  found: readonly Leftover[],
): boolean {
  const kept = volumes.filter(({ onDelete }) => onDelete === "Retain");
  return kept.some(({ id }) => !referenced.has(id) && !found.some(({ volume }) => volume === id));
}

function inDoubt(leftover: Leftover): Leftover {
  return leftover.proof === "MadeUnderMark" ? { ...leftover, proof: "Unattributed" } : leftover;
}

/** Volumes that bear another's id and stand in the Claim all the same: they were taken over. */
async function takenVolumes(
  { api }: DriverContext,
  { claim, node }: { readonly claim: ClaimedMachine; readonly node: string },
  { referenced }: Standing,
): Promise<Answer<readonly Leftover[]>> {
  const found: Leftover[] = [];
  for (const { id } of claim.volumes ?? []) {
    const { owner, storage = "" } = parseVolume(id) ?? {};
    if (owner === undefined || owner === claim.externalId || referenced.has(id)) continue;
    const rows = await listVolumes(api, { node, storage }, { content: "images", vmid: owner });
    if (!rows.ok) return rows;
    const row = rows.value.find(({ volume }) => volume === id);
    if (row === undefined) continue;
    found.push({ volume: id, storage, node, sizeBytes: row.sizeBytes, proof: "Claimed" });
  }
  return answered(found);
}

/** Where volumes of ours may be: what was not listed at first proves nothing now. */
function mayHold({ name, contents }: NodeStorage, claim: ClaimedMachine): boolean {
  if (!contents.includes("images")) return false;
  return isNamed(claim, name) || claim.preflightVolumes?.includes(unlisted(name)) !== true;
}

interface Search {
  readonly claim: ClaimedMachine;
  readonly node: string;
  readonly storage: NodeStorage;
  readonly machine: Standing;
}

async function onStorage(
  context: DriverContext,
  { claim, node, storage, machine }: Search,
): Promise<Answer<readonly Leftover[]>> {
  const { externalId } = claim;
  const { name, isUsable } = storage;
  if (!isUsable) return isNamed(claim, name) ? failed(unusable(name, node)) : answered([]);
  const place = { node, storage: name };
  const volumes = await listVolumes(context.api, place, { content: "images", vmid: externalId });
  if (!volumes.ok) return volumes;
  const around = {
    isPrivate: isPrivate(storage, context.settings.exclusiveStorages ?? []),
    isMarked: machine.isOurs,
    // A machine that was moved has not seen the own storages of its new node before.
    isSeen: storage.isShared || claim.preflightNode === node,
  };
  const names = new Set([...machine.referenced].map(nameWithoutStorage));
  return answered(
    volumes.value
      .filter((row) => row.externalId === externalId && !machine.referenced.has(row.volume))
      .map(({ volume, sizeBytes }) => {
        const isInDoubt = names.has(nameWithoutStorage(volume));
        const proof = isInDoubt ? "Unattributed" : proofOf(volume, claim, around);
        const leftover = { volume, storage: name, node, sizeBytes, proof };
        return savedMemory.test(volume) ? { ...leftover, isSavedMemory: true } : leftover;
      }),
  );
}

/** As a suspend names its volume (qemu-server, vm_suspend); a snapshot's memory has its name. */
const savedMemory = /[:/]vm-\d+-state-suspend-\d{4}-\d\d-\d\d(?:\.raw)?$/;

/**
 * Whose a volume is. Its name proves nothing: on shared storage another cluster may have the same
 * VMID, and an earlier machine may have left it. So it must stand in the Claim; or have appeared,
 * where nobody else can have put it, after a listing of ours and while the marked machine stood.
 */
function proofOf(
  volume: string,
  claim: ClaimedMachine,
  around: { readonly isPrivate: boolean; readonly isMarked: boolean; readonly isSeen: boolean },
): Leftover["proof"] {
  const { preflightVolumes: before } = claim;
  if (before?.includes(volume) === true) return "Before";
  if (claim.volumes?.some(({ id }) => id === volume) === true) return "Claimed";
  const { isPrivate: isAlone, isMarked, isSeen } = around;
  const isMade = wasListed(before, volume) && isAlone && isMarked && isSeen;
  return isMade ? "MadeUnderMark" : "Unattributed";
}

function wasListed(before: readonly string[] | undefined, volume: string): boolean {
  const storage = parseVolume(volume)?.storage ?? "";
  return before !== undefined && !before.includes(unlisted(storage));
}

function isPrivate(storage: NodeStorage, exclusive: readonly string[]): boolean {
  return !storage.isShared || exclusive.includes(storage.name);
}

interface Standing {
  readonly isOurs: boolean;
  readonly referenced: ReadonlySet<string>;
}

async function standing(
  context: DriverContext,
  claim: ClaimedMachine,
  node: string,
): Promise<Answer<Standing>> {
  const place = { node, externalId: claim.externalId };
  const read = await context.configs.read(place);
  if (read.type === "failed") return failed(read.failure);
  if (read.type === "notHere") return answered({ isOurs: false, referenced: new Set<string>() });
  const referenced = await referencedVolumes(context.api, place, read.config);
  if (!referenced.ok) return referenced;
  const isOurs = judge(read.config, claim).is === "ours";
  return answered({ isOurs, referenced: referenced.value });
}

function isNamed(claim: ClaimedMachine, storage: string): boolean {
  return claim.volumes?.some(({ id }) => parseVolume(id)?.storage === storage) === true;
}

function noNode(externalId: string): Failure {
  return { category: "DependencyNotReady", message: `no node is known for VM ${externalId}` };
}

function unusable(storage: string, node: string): Failure {
  return {
    category: "NodeUnhealthy",
    message: `the storage ${storage} on ${node} cannot be read, and volumes of ours are on it`,
  };
}
