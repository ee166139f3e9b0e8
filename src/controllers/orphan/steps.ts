import { claimKind, virtualMachineKind, vmImageKind } from "../../api/index.ts";
import type { Claim } from "../../api/index.ts";
import { isProvenOurs } from "../../hypervisor/index.ts";
import type {
  Failure,
  Machine,
  Operation,
  RemoveImage,
  Seen,
  SeenFile,
} from "../../hypervisor/index.ts";
import { listText } from "../../kernel/list-text.ts";
import { objectKey, type KubeObject } from "../../kernel/object.ts";
import { claimName, isFile, isHeld, isPending } from "../claims/index.ts";
import { clearingOf, deadLock, lockText } from "../failures/index.ts";
import { keyOf } from "../operations/index.ts";
import type { Tried } from "./failing.ts";
import type { Find } from "./find.ts";
import { ownBytes } from "./plan.ts";
import { unlessGone } from "./sweep.ts";
import { takenOn } from "./taken.ts";
import type { OrphanTurn } from "./turn.ts";
import { guard } from "../../kernel/guard.ts";

/** What is to be begun, or why nothing is. */
export type Prepared =
  | {
      readonly do: "begin";
      readonly step: "Destroy" | "Unlock" | "Release";
      readonly operation: Operation;
      readonly intent: string;
    }
  | { readonly do: "fail"; readonly failure: Failure; readonly tried?: Tried }
  | { readonly do: "wait"; readonly name: string }
  /** It is not as the sweep saw it. */
  | { readonly do: "look" };

/** Proves once more whose it is, and says what destroys it. */
export async function prepareDestruction(turn: OrphanTurn): Promise<Prepared> {
  const { find, orphan } = turn;
  if (find === undefined) return { do: "look" };
  switch (find.kind) {
    case "Machine":
      return prepareMachine(turn, find);
    case "Husk":
      return prepareHusk(turn, find);
    case "Volume":
    case "ISO":
    case "Image":
      return prepareVolume(turn, find);
    case "Snapshot":
    case "Lock": {
      const message = `Berth cannot destroy a ${orphan.spec.kind} by itself.`;
      return { do: "fail", failure: { category: "APINotSupported", message } };
    }
  }
}

async function prepareMachine(turn: OrphanTurn, find: Find): Promise<Prepared> {
  const { deps, connection } = turn;
  const mayDestroy = await deps.mayDestroy();
  if (!guard("orphan-kind-stays", mayDestroy)) return { do: "fail", failure: kindIsGoing };
  const claim = await holdClaim(turn, find);
  if (claim === undefined) return { do: "look" };
  const seen = await connection.driver.observe(claim.spec, {});
  if (seen.at === "unknown") return { do: "fail", failure: seen.failure };
  if (seen.at !== "ours") return { do: "look" };
  const { machine } = seen;
  if (machine.power !== "Stopped") return { do: "look" };
  if (!guard("orphan-vm-as-found", isAsFound(find, claim, machine))) return { do: "look" };
  const locked = prepareLocked(turn, claim, machine);
  if (locked !== undefined) return locked;
  const recorded = await recordVolumes(turn, claim, machine);
  if (!recorded.ok) return { do: "fail", failure: recorded.failure };
  const { spec } = recorded.claim;
  const volumes = machine.volumes.filter(({ isOwn }) => isOwn).map(({ id }) => id);
  const at = { node: machine.node, version: machine.version };
  const operation = { kind: "destroy", claim: spec, at, volumes } as const;
  const intent = `Destroy the machine ${spec.externalId} with ${volumes.length} volumes.`;
  return { do: "begin", step: "Destroy", operation, intent };
}

/** Whether it is the very VM that the sweep found, and that was decided about. */
function isAsFound(find: Find, { spec }: Claim, machine: Machine): boolean {
  const isHere = machine.node === find.node && ownBytes(machine) === find.sizeBytes;
  return isHere && (find.identity === undefined || find.identity === spec.identity);
}

/** How often a lock is cleared that stands there again, or whose clearing nobody confirmed. */
const unlocksMax = 3;

/**
 * What a lock asks for before anything else: to wait; or to clear it as that of a declared machine,
 * where it is dead and ours and an account may; or a person, who is told the command.
 */
export function prepareLocked(
  { connection, operation: before }: OrphanTurn,
  { spec: claim }: Claim,
  { lock, node, version }: Machine,
): Prepared | undefined {
  if (lock === undefined) return undefined;
  if (lock.state !== "Dead") return { do: "wait", name: `the lock: ${lockText(lock)}` };
  const { operation, intent } = clearingOf({ claim, at: { node, version } }, lock);
  const failure = deadLock(claim, lock);
  if (!connection.capabilities.includes("Unlock")) return { do: "fail", failure };
  const { key } = keyOf(operation);
  const attempts = before?.record.key === key ? before.record.attempt : 0;
  // It counts as refused: the account is not used again before its time.
  if (attempts >= unlocksMax) return { do: "fail", failure, tried: { step: "Unlock", key } };
  return { do: "begin", step: "Unlock", operation, intent };
}

type Recorded =
  | { readonly ok: true; readonly claim: Claim }
  | { readonly ok: false; readonly failure: Failure };

/** Before a machine goes, all that goes with it stands in its Claim; what does not has to stay. */
async function recordVolumes(
  { deps, connection }: OrphanTurn,
  claim: Claim,
  machine: Machine,
): Promise<Recorded> {
  const leftovers = await connection.driver.leftovers({ ...claim.spec, node: machine.node });
  if (!leftovers.ok) return leftovers;
  const volumes = deps.namedVolumes(claim.spec, machine, leftovers.value);
  const known = new Set(volumes.map(({ id }) => id));
  // What is with another VM by now, or lies beside it, is not freed with it.
  const own = machine.volumes.filter(({ isOwn }) => isOwn);
  const isIn = (id: string): boolean => own.some((volume) => volume.id === id);
  const kept = volumes
    .filter(({ id, onDelete }) => onDelete === "Retain" && isIn(id))
    .map(({ id }) => id);
  const strangers = own.filter(({ id }) => !known.has(id));
  const staying = [...strangers.map(({ id }) => id), ...kept];
  if (staying.length > 0) return { ok: false, failure: unaccounted(claim, staying) };
  const { node } = machine;
  return { ok: true, claim: await deps.ledger.record(claim, { volumes, node }) };
}

/**
 * The Claim of a machine whose object is gone, as the server has it now. Where none knows it, the
 * mark's word is made a Claim, so that nobody else can take the machine from now on. Undefined: an
 * object has it after all.
 */
export async function holdClaim(
  turn: OrphanTurn,
  find: Find | undefined,
): Promise<Claim | undefined> {
  const { deps, connection, orphan } = turn;
  const { systemId, name } = connection;
  const { externalId } = orphan.spec;
  const claim = await heldClaim(turn, claimName(systemId, externalId));
  if (claim !== undefined) return (await isDeclared(turn, claim)) ? undefined : claim;
  // What was ours by its Claim is only marked without it, and that is for a sweep to say.
  if (find?.mark === undefined || find.ownership === "Ours") return undefined;
  const { mark, node } = find;
  const { namespace, name: owner } = mark.owner;
  const { uid = "" } = orphan.metadata;
  const reserved = await deps.ledger.reserve({
    vm: { metadata: { namespace, name: owner, uid } },
    hypervisor: { name, systemId },
    externalId,
    idChosenBy: "Berth",
    identity: mark.identity,
    node,
    otherVolumes: [],
    resources: { cpu: 0, memory: "0", storage: "0" },
    kept: { everExisted: true },
  });
  return reserved.is === "ours" ? reserved.claim : undefined;
}

async function heldClaim(turn: OrphanTurn, name: string): Promise<Claim | undefined> {
  const claim = await readClaim(turn, name);
  if (claim === undefined || !isHeld(claim.spec)) return undefined;
  if (!isPending(claim.spec)) return claim;
  // An object waits for the id, and for what stands there to go. It waits on without the Claim.
  await turn.deps.ledger.remove(claim);
  return undefined;
}

async function isDeclared({ deps }: OrphanTurn, { spec }: Claim): Promise<boolean> {
  const { namespace, name, uid } = spec.owner;
  const { client } = deps;
  const objects = isFile(spec) ? client.of(vmImageKind) : client.of(virtualMachineKind);
  const owner = await unlessGone<KubeObject>(() => objects.get({ namespace, name }));
  return owner !== undefined && (uid === undefined || owner.metadata.uid === uid);
}

async function prepareHusk(turn: OrphanTurn, { claim: name = "", node }: Find): Promise<Prepared> {
  const claim = await readClaim(turn, name);
  if (claim === undefined) return { do: "look" };
  if (isHeld(claim.spec) && (await isDeclared(turn, claim))) return { do: "look" };
  const sinceMs = Date.parse(claim.spec.reservedAt ?? "") || 0;
  const operation = { kind: "clearHusk", claim: claim.spec, node, sinceMs } as const;
  const { externalId } = claim.spec;
  const intent = `Destroy the empty machine ${externalId}, with the account for unlocking.`;
  return { do: "begin", step: "Destroy", operation, intent };
}

async function prepareVolume(turn: OrphanTurn, find: Find): Promise<Prepared> {
  const { externalId: volume, node, kind } = find;
  if (kind === "Volume" && (await isTaken(turn, volume))) return { do: "look" };
  const operation = await removalOf(turn, find);
  if (operation === undefined) return { do: "look" };
  const intent = `Destroy the ${kind.toLowerCase()} ${volume} on ${node}.`;
  return { do: "begin", step: "Destroy", operation, intent };
}

async function removalOf(turn: OrphanTurn, find: Find): Promise<Operation | undefined> {
  switch (find.ownership) {
    case "Ours":
      return ofOurs(turn, find);
    case "Probable":
      return ofProbable(turn, find);
    case "Marked":
    case "Unattributed":
      return ofNobody(turn, find);
  }
}

/** Approved by a person or by the policy. Its VM may exist and be declared. */
async function ofProbable(turn: OrphanTurn, find: Find): Promise<Operation | undefined> {
  const { externalId: volume, node } = find;
  const claim = await readClaim(turn, find.claim ?? "");
  if (claim?.spec.probableVolumes?.some(({ id }) => id === volume) !== true) return undefined;
  const { spec } = claim;
  const about = { claim: spec, node, volume, seen: seenOf(find) } as const;
  return { kind: "removeVolume", ...about, isStray: true, isApproved: true };
}

/** On the word of the person who typed its id: the schema has compared it already. */
function ofNobody({ orphan }: OrphanTurn, find: Find): Operation {
  const { externalId: volume, node } = find;
  const { confirm: confirmed = "" } = orphan.spec;
  return { kind: "discardVolume", node, volume, confirmed, seen: seenOf(find) };
}

/** What is to go is what was found: another volume or file may have its name by now. */
function seenOf({ sizeBytes = 0, createdMs }: Find): SeenFile {
  return createdMs === undefined ? { sizeBytes } : { sizeBytes, createdMs };
}

/** By the Claim that names it, as the server has it now. Undefined: an object has it after all. */
async function ofOurs(turn: OrphanTurn, find: Find): Promise<Operation | undefined> {
  const { externalId: volume, node, storage = "", fileName = "" } = find;
  const claim = await readClaim(turn, find.claim ?? "");
  if (claim === undefined || (await isDeclared(turn, claim))) return undefined;
  const seen = seenOf(find);
  if (isFile(claim.spec)) return removalOfFile(claim, { node, storage, fileName, seen });
  const about = { claim: claim.spec, node, isStray: true, seen } as const;
  if (find.kind === "Volume") return { kind: "removeVolume", ...about, volume };
  return { kind: "removeSeed", ...about, storage, fileName };
}

/** A file that Berth brought for a VMImage that is gone. */
function removalOfFile(
  { spec }: Claim,
  file: Pick<RemoveImage, "node" | "storage" | "fileName" | "seen">,
): RemoveImage {
  const use = spec.file?.content === "ISO" ? "Disc" : "Disk";
  return { kind: "removeImage", fileClaim: spec, use, ...file };
}

/** Whether an object declares, by now, that it takes the volume: what a sweep saw may be older. */
async function isTaken({ deps, connection }: OrphanTurn, volume: string): Promise<boolean> {
  const { items } = await deps.client.of(virtualMachineKind).list();
  return takenOn(connection.name, items).has(volume);
}

/**
 * Lets the Claim rest once nothing of its machine is left. False: something may be, so that what is
 * left is found and named by the next sweep, or there was no telling.
 */
export async function retireClaim(turn: OrphanTurn): Promise<boolean> {
  const { orphan, deps, connection } = turn;
  const { claim: name } = orphan.status ?? {};
  const { externalId, kind } = orphan.spec;
  const machine = claimName(connection.systemId, externalId);
  const known = await readClaim(turn, kind === "Machine" ? machine : (name ?? ""));
  if (known === undefined) return true;
  const claim = await forgetProbable(turn, known);
  if (!isHeld(claim.spec)) {
    if (kind === "Husk") await deps.ledger.remove(claim);
    return true;
  }
  if (await isDeclared(turn, claim)) return true;
  return isFile(claim.spec) ? retireFile(turn, claim) : retireHeld(turn, claim);
}

/** The volume is gone: it counts no more in the budget of failed attempts. */
async function forgetProbable({ orphan, deps }: OrphanTurn, claim: Claim): Promise<Claim> {
  const { probableVolumes = [] } = claim.spec;
  const left = probableVolumes.filter(({ id }) => id !== orphan.spec.externalId);
  if (left.length === probableVolumes.length) return claim;
  return deps.ledger.record(claim, { probableVolumes: left });
}

async function retireHeld({ connection, deps }: OrphanTurn, claim: Claim): Promise<boolean> {
  const seen: Seen = await connection.driver.observe(claim.spec, {});
  if (seen.at === "unknown") return false;
  if (seen.at !== "absent") return true;
  const leftovers = await connection.driver.leftovers(claim.spec);
  if (!leftovers.ok) return false;
  const isOurs = leftovers.value.some(isProvenOurs);
  if (!isOurs) await deps.ledger.retire(claim);
  return true;
}

async function retireFile(
  { connection, deps, orphan }: OrphanTurn,
  claim: Claim,
): Promise<boolean> {
  const { file, node = orphan.status?.node ?? "" } = claim.spec;
  const at = { node, storage: file?.storage ?? "" };
  const { driver } = connection;
  const listed = await (file?.content === "ISO" ? driver.discs(at) : driver.images(at));
  if (!listed.ok) return false;
  const isGone = !listed.value.some(({ fileName }) => fileName === file?.name);
  if (guard("retire-absent-file", isGone)) await deps.ledger.remove(claim);
  return true;
}

export async function readClaim(
  { deps }: Pick<OrphanTurn, "deps">,
  name: string,
): Promise<Claim | undefined> {
  return name === "" ? undefined : unlessGone(() => deps.client.of(claimKind).get({ name }));
}

function unaccounted({ spec }: Claim, volumes: readonly string[]): Failure {
  return {
    category: "OrphanedVolumes",
    message:
      `Destroying the machine ${spec.externalId} of ${objectKey(spec.owner)} would free volumes ` +
      `that have to stay: ${listText(volumes)}. Nothing was destroyed.`,
    remedy: "Move these volumes to another machine on the hypervisor, or adopt the machine.",
  };
}

const kindIsGoing: Failure = {
  category: "DependencyNotReady",
  message: "The kind VirtualMachine is being deleted: then no machine is destroyed.",
  remedy: "Install the kinds again (berth crds). Berth goes on by itself.",
};
