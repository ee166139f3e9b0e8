import { claimKind, virtualMachineKind } from "../../api/index.ts";
import type { Claim } from "../../api/index.ts";
import type { Failure, Machine, Operation, Seen } from "../../hypervisor/index.ts";
import { objectKey } from "../../kernel/object.ts";
import { claimName, isHeld } from "../claims/index.ts";
import { clearingOf, deadLock, lockText } from "../failures/index.ts";
import type { Find } from "./find.ts";
import { unlessGone } from "./sweep.ts";
import { takenOn } from "./taken.ts";
import type { OrphanTurn } from "./turn.ts";

/** What is to be begun, or why nothing is. */
export type Prepared =
  | {
      readonly do: "begin";
      readonly step: "Destroy" | "Unlock";
      readonly operation: Operation;
      readonly intent: string;
      /** How often it was tried; absent: as often as it failed. */
      readonly attempt?: number;
    }
  | { readonly do: "fail"; readonly failure: Failure }
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
  if (!(await deps.mayDestroy())) return { do: "fail", failure: kindIsGoing };
  const claim = await holdClaim(turn, find);
  if (claim === undefined) return { do: "look" };
  const seen = await connection.driver.observe(claim.spec, {});
  if (seen.at === "unknown") return { do: "fail", failure: seen.failure };
  if (seen.at !== "ours") return { do: "look" };
  const { machine } = seen;
  if (machine.power !== "Stopped") return { do: "look" };
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

/** How often a lock is cleared that stands there again, or whose clearing nobody confirmed. */
const unlocksMax = 3;

/**
 * What a lock asks for before anything else: to wait; or to clear it as that of a declared machine,
 * where it is dead and ours and an account may; or a person, who is told the command.
 */
export function prepareLocked(
  { connection, orphan }: OrphanTurn,
  { spec: claim }: Claim,
  { lock, node, version }: Machine,
): Prepared | undefined {
  if (lock === undefined) return undefined;
  if (lock.state !== "Dead") return { do: "wait", name: `the lock: ${lockText(lock)}` };
  const { operation, intent } = clearingOf({ claim, at: { node, version } }, lock);
  const last = orphan.status?.operation;
  const attempt = last?.intent === intent ? last.attempt + 1 : 1;
  const mayUnlock = connection.capabilities.includes("Unlock") && attempt <= unlocksMax;
  if (!mayUnlock) return { do: "fail", failure: deadLock(claim, lock) };
  return { do: "begin", step: "Unlock", operation, intent, attempt };
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
  const kept = volumes.filter(({ onDelete }) => onDelete === "Retain").map(({ id }) => id);
  const strangers = machine.volumes.filter(({ id, isOwn }) => isOwn && !known.has(id));
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
  const claim = await readClaim(turn, claimName(systemId, externalId));
  if (claim !== undefined && isHeld(claim.spec)) {
    return (await isDeclared(turn, claim)) ? undefined : claim;
  }
  if (find?.mark === undefined) return undefined;
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
    preflightVolumes: [],
    resources: { cpu: 0, memory: "0", storage: "0" },
    kept: { everStood: true },
  });
  return reserved.is === "ours" ? reserved.claim : undefined;
}

async function isDeclared({ deps }: OrphanTurn, { spec }: Claim): Promise<boolean> {
  const { namespace, name, uid } = spec.owner;
  const vms = deps.client.of(virtualMachineKind);
  const vm = await unlessGone(() => vms.get({ namespace, name }));
  return vm !== undefined && (uid === undefined || vm.metadata.uid === uid);
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
  const operation = find.ownership === "Ours" ? await ofOurs(turn, find) : ofNobody(turn, find);
  if (operation === undefined) return { do: "look" };
  const intent = `Destroy the ${kind.toLowerCase()} ${volume} on ${node}.`;
  return { do: "begin", step: "Destroy", operation, intent };
}

/** On the word of the person who typed its id: the schema has compared it already. */
function ofNobody({ orphan }: OrphanTurn, { externalId: volume, node }: Find): Operation {
  return { kind: "discardVolume", node, volume, confirmed: orphan.spec.confirm ?? "" };
}

/** By the Claim that names it, as the server has it now. Undefined: an object has it after all. */
async function ofOurs(turn: OrphanTurn, find: Find): Promise<Operation | undefined> {
  const { externalId: volume, node, storage = "", fileName = "" } = find;
  const claim = await readClaim(turn, find.claim ?? "");
  if (claim === undefined || (await isDeclared(turn, claim))) return undefined;
  const about = { claim: claim.spec, node, isStray: true } as const;
  if (find.kind === "Volume") return { kind: "removeVolume", ...about, volume };
  return { kind: "removeSeed", ...about, storage, fileName };
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
  const claim = await readClaim(turn, kind === "Machine" ? machine : (name ?? ""));
  if (claim === undefined) return true;
  if (!isHeld(claim.spec)) {
    if (kind === "Husk") await deps.ledger.remove(claim);
    return true;
  }
  return (await isDeclared(turn, claim)) || retireHeld(turn, claim);
}

async function retireHeld({ connection, deps }: OrphanTurn, claim: Claim): Promise<boolean> {
  const seen: Seen = await connection.driver.observe(claim.spec, {});
  if (seen.at === "unknown") return false;
  if (seen.at !== "absent") return true;
  const leftovers = await connection.driver.leftovers(claim.spec);
  if (!leftovers.ok) return false;
  const isOurs = leftovers.value.some(
    ({ proof }) => proof === "Claimed" || proof === "MadeUnderMark",
  );
  if (!isOurs) await deps.ledger.retire(claim);
  return true;
}

async function readClaim({ deps }: OrphanTurn, name: string): Promise<Claim | undefined> {
  return name === "" ? undefined : unlessGone(() => deps.client.of(claimKind).get({ name }));
}

function unaccounted({ spec }: Claim, volumes: readonly string[]): Failure {
  return {
    category: "OrphanedVolumes",
    message:
      `Destroying the machine ${spec.externalId} of ${objectKey(spec.owner)} would free volumes ` +
      `that have to stay: ${volumes.join(", ")}. Nothing was destroyed.`,
    remedy: "Move these volumes to another machine on the hypervisor, or adopt the machine.",
  };
}

const kindIsGoing: Failure = {
  category: "DependencyNotReady",
  message: "The kind VirtualMachine is being deleted: then no machine is destroyed.",
  remedy: "Install the kinds again (berth crds). Berth goes on by itself.",
};
