import { answered, failed, isProvenVolume } from "../../hypervisor/index.ts";
import type { Answer, ClaimedMachine, Failure, Leftover } from "../../hypervisor/index.ts";
import type { DriverContext } from "./context.ts";
import { notesOf } from "./listing-notes.ts";
import { storagesOf, tasksBehindAllocation } from "./made-volumes.ts";
import { judgeVolume, type Judged } from "./probable.ts";
import { aheadOfVolumes, isRecorded } from "./recorded-volumes.ts";
import { referencedVolumes } from "./references.ts";
import {
  type ListedVolume,
  listVolumes,
  nodeStorages,
  type NodeStorage,
  sightOf,
} from "./storages.ts";
import { nameWithoutStorage, parseVolume } from "./translate/volumes.ts";
import { guard } from "../../kernel/guard.ts";

/**
 * Volumes that bear the Claim's id and that the VM does not refer to, as the Claim's node lists
 * them. A storage that cannot be read now makes the answer a failure, not a shorter list.
 */
export async function findLeftovers(
  context: DriverContext,
  claim: ClaimedMachine,
): Promise<Answer<readonly Leftover[]>> {
  const { node, externalId } = claim;
  if (node === undefined) return failed(noNode(externalId));
  const referenced = await referencedBy(context, claim, node);
  if (!referenced.ok) return referenced;
  const storages = await nodeStorages(context.api, node);
  if (!storages.ok) return storages;
  const found: Found[] = [];
  for (const storage of storages.value.filter((candidate) => mayHold(candidate, claim))) {
    const here = await onStorage(context, { claim, node, storage });
    if (!here.ok) return here;
    const isLeft = ({ row }: Found): boolean => {
      return guard("leftover-unreferenced", !referenced.value.has(row.volume));
    };
    found.push(...here.value.filter(isLeft));
  }
  const known = await knownOf(context, claim, node);
  if (!known.ok) return known;
  const judged = await judgedBy(context, known.value, found);
  if (!judged.ok) return judged;
  const names = new Set([...referenced.value].map(nameWithoutStorage));
  const own = found.map((one) =>
    leftoverOf(one, { known: known.value, node, names, judged: judged.value }),
  );
  const taken = await takenVolumes(context, { known: known.value, node }, referenced.value);
  if (!taken.ok) return taken;
  const all = [...own, ...taken.value];
  const isSure = guard("leftover-retained-found", !isKeptMissing(claim, referenced.value, all));
  return answered(isSure ? all : all.map(inDoubt));
}

/** A row of a list, and where it was. */
interface Found {
  readonly row: ListedVolume;
  readonly storage: NodeStorage;
}

/** What the Claim says, and how far the clock is ahead that dates the volumes. */
interface Known {
  readonly claim: ClaimedMachine;
  readonly aheadMs: number;
}

async function knownOf(
  context: DriverContext,
  claim: ClaimedMachine,
  node: string,
): Promise<Answer<Known>> {
  const ahead = await aheadOfVolumes(context, node, claim.volumes ?? []);
  return ahead.ok ? answered({ claim, aheadMs: ahead.value }) : ahead;
}

interface Around {
  readonly known: Known;
  readonly node: string;
  /** The names of all volumes that the VM refers to, without their storages. */
  readonly names: ReadonlySet<string>;
  readonly judged: Judged | undefined;
}

function leftoverOf(found: Found, { known, node, names, judged }: Around): Leftover {
  const { row, storage } = found;
  const { volume } = row;
  // Two storages may be one pool: what looks left over may be the VM's own disk.
  const isSure = guard("leftover-name-unused", !names.has(nameWithoutStorage(volume)));
  const proof = isSure ? proofOf(found, known, judged) : { proof: "Unattributed" as const };
  const leftover = { volume, storage: storage.name, node, ...sightOf(row), ...proof };
  const day = savedMemory.exec(volume)?.[1];
  return day === undefined ? leftover : { ...leftover, isSavedMemory: true, day };
}

/** What the Claim says of a volume; else what our own tasks say. */
function proofOf(
  found: Found,
  known: Known,
  judged: Judged | undefined,
): Pick<Leftover, "proof" | "evidence"> {
  const proven = proofByClaim(found, known);
  if (proven !== undefined) return proven;
  return judged === undefined ? { proof: "Unattributed" } : judgeVolume(found.row, judged);
}

function proofByClaim(
  found: Found,
  { claim, aheadMs }: Known,
): Pick<Leftover, "proof" | "evidence"> | undefined {
  const { volume } = found.row;
  const { volumes, otherVolumes, probableVolumes } = claim;
  const isOthers = otherVolumes?.some(({ id }) => id === volume) === true;
  if (!guard("leftover-not-before", !isOthers)) return { proof: "Before" };
  const known = volumes?.find(({ id }) => id === volume);
  if (known !== undefined)
    return { proof: isStillOurs(known, found.row, aheadMs) ? "Claimed" : "Unattributed" };
  if (isNamedBefore(found, claim)) return { proof: "Named" };
  const probable = probableVolumes?.find(({ id }) => id === volume);
  return probable && { proof: "Probable", evidence: probable.evidence };
}

/** A name alone proves nothing: it has to be the volume that was recorded, with its proof. */
function isStillOurs(known: ClaimVolume, row: ListedVolume, aheadMs: number): boolean {
  const isProven = guard("leftover-claim-proven", isProvenVolume(known));
  return isProven && isRecorded(known, row, aheadMs);
}

type ClaimVolume = NonNullable<ClaimedMachine["volumes"]>[number];

/**
 * Its name was chosen by Berth for one operation, and was in the Claim before anything was sent. On
 * another node the same name is another volume: a replica, or what a migration left there.
 */
function isNamedBefore({ row, storage }: Found, { allocation, node }: ClaimedMachine): boolean {
  if (allocation === undefined) return false;
  const { volume } = row;
  const { volume: named, earlier = [], listed } = allocation;
  const isIts = volume === named || earlier.includes(volume);
  return (
    isIts &&
    guard("named-volume-on-its-node", storage.isShared || allocation.node === node) &&
    guard("named-volume-not-before", volume !== named || !listed.includes(volume))
  );
}

/** The tasks of the Claim's last allocation, where a volume is there that only they can explain. */
async function judgedBy(
  context: DriverContext,
  known: Known,
  found: readonly Found[],
): Promise<Answer<Judged | undefined>> {
  const { claim } = known;
  const { allocation } = claim;
  const isOpen = found.some((one) => {
    return proofByClaim(one, known) === undefined && !isListed(one.row.volume, claim);
  });
  if (allocation === undefined || !isOpen) return answered(undefined);
  const tasks = await tasksBehindAllocation(context, claim, allocation);
  if (!tasks.ok) return tasks;
  const storages = found.map(({ storage }) => storage);
  const shared = namesOf(storages.filter((storage) => !isPrivate(context, storage)));
  const remote = namesOf(storages.filter(({ isShared }) => isShared));
  return answered({ allocation, tasks: tasks.value, claim, shared, remote });
}

function namesOf(storages: readonly NodeStorage[]): ReadonlySet<string> {
  return new Set(storages.map(({ name }) => name));
}

function isListed(volume: string, { allocation }: ClaimedMachine): boolean {
  return allocation?.listed.includes(volume) === true;
}

function isPrivate({ settings }: DriverContext, { name, isShared }: NodeStorage): boolean {
  return !isShared || settings.exclusiveStorages?.includes(name) === true;
}

/**
 * A hand-over that was cut short may have renamed a volume that no VM refers to yet. So while one
 * that has to stay is nowhere to be found, every volume that the Claim does not name may be it.
 */
function isKeptMissing(
  { volumes = [] }: ClaimedMachine,
  referenced: ReadonlySet<string>,
  found: readonly Leftover[],
): boolean {
  const kept = volumes.filter(({ onDelete }) => onDelete === "Retain");
  return kept.some(({ id }) => !referenced.has(id) && !found.some(({ volume }) => volume === id));
}

function inDoubt(leftover: Leftover): Leftover {
  const { proof, evidence: _evidence, ...rest } = leftover;
  const isTold = proof === "TaskLogged" || proof === "Probable";
  return isTold ? { ...rest, proof: "Unattributed" } : leftover;
}

/** Volumes that bear another's id and stand in the Claim all the same: they were taken over. */
async function takenVolumes(
  { api }: DriverContext,
  { known: { claim, aheadMs }, node }: { readonly known: Known; readonly node: string },
  referenced: ReadonlySet<string>,
): Promise<Answer<readonly Leftover[]>> {
  const found: Leftover[] = [];
  for (const { known, owner, storage } of takenBy(claim)) {
    const { id } = known;
    if (referenced.has(id)) continue;
    const rows = await listVolumes(api, { node, storage }, { content: "images", vmid: owner });
    if (!rows.ok) return rows;
    const row = rows.value.find(({ volume }) => volume === id);
    if (row === undefined) continue;
    const proof = isStillOurs(known, row, aheadMs) ? "Claimed" : "Unattributed";
    found.push({ volume: id, storage, node, ...sightOf(row), proof });
  }
  return answered(found);
}

function takenBy({ volumes = [], externalId }: ClaimedMachine): Taken[] {
  return volumes.flatMap((known) => {
    const { owner, storage = "" } = parseVolume(known.id) ?? {};
    return owner === undefined || owner === externalId ? [] : [{ known, owner, storage }];
  });
}

interface Taken {
  readonly known: ClaimVolume;
  readonly owner: string;
  readonly storage: string;
}

/** Where volumes of ours may be: what was not listed at first proves nothing now. */
function mayHold({ name, contents }: NodeStorage, claim: ClaimedMachine): boolean {
  if (!contents.includes("images")) return false;
  return isNamed(claim, name) || notesOf(claim)?.unlisted.includes(name) !== true;
}

interface Search {
  readonly claim: ClaimedMachine;
  readonly node: string;
  readonly storage: NodeStorage;
}

async function onStorage(
  { api }: DriverContext,
  { claim, node, storage }: Search,
): Promise<Answer<readonly Found[]>> {
  const { externalId: vmid } = claim;
  const { name, isUsable } = storage;
  if (!isUsable) {
    const isNone = guard("leftovers-whole-list", !isNamed(claim, name));
    return isNone ? answered([]) : failed(unusable(name, node));
  }
  const volumes = await listVolumes(api, { node, storage: name }, { content: "images", vmid });
  if (!volumes.ok) return volumes;
  const own = volumes.value.filter(({ externalId }) => {
    return guard("leftover-of-this-id", externalId === vmid);
  });
  return answered(own.map((row) => ({ row, storage })));
}

/** As a suspend names its volume (qemu-server, vm_suspend); a snapshot's memory has its name. */
const savedMemory = /[:/]vm-\d+-state-suspend-(\d{4}-\d\d-\d\d)(?:\.raw)?$/;

async function referencedBy(
  context: DriverContext,
  { externalId }: ClaimedMachine,
  node: string,
): Promise<Answer<ReadonlySet<string>>> {
  const place = { node, externalId };
  const read = await context.configs.read(place);
  if (read.type === "failed") return failed(read.failure);
  if (read.type === "notHere") return answered(new Set<string>());
  return await referencedVolumes(context.api, place, read.config);
}

/** Whether the Claim knows of a volume there, or of an operation that may have made one. */
function isNamed(claim: ClaimedMachine, storage: string): boolean {
  const { volumes = [], probableVolumes = [], allocation } = claim;
  const known = [...volumes, ...probableVolumes];
  const isAllocated = allocation !== undefined && storagesOf(allocation).includes(storage);
  return isAllocated || known.some(({ id }) => parseVolume(id)?.storage === storage);
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
