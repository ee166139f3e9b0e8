import type { Claim, ClaimSpec } from "../../api/index.ts";
import type { Allocating, Answer, Failure, NewVolume, Operation } from "../../hypervisor/index.ts";
import { answered } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { humanBytes } from "../../kernel/human-bytes.ts";
import { listText } from "../../kernel/list-text.ts";
import { limits } from "../../kernel/limits.ts";
import { withLeftovers } from "./plan-claim.ts";
import { probableChange } from "./plan-leftovers.ts";
import { withOpenAllocation } from "./leftovers.ts";
import type { ConnectedTurn } from "./turn.ts";
import { guard } from "../../kernel/guard.ts";

type Allocation = NonNullable<ClaimSpec["allocation"]>;

/**
 * Writes into the Claim what an operation is about to allocate, before it begins. Resolves with a
 * failure where it may not begin: the storage could not be listed, or volumes that failed attempts
 * probably left there hold more than their budget.
 */
export async function recordAllocation(
  turn: ConnectedTurn,
  operation: Operation,
  operationId: string,
): Promise<Failure | undefined> {
  const { claim, deps } = turn;
  const found = await allocationOf(turn, operation, operationId);
  if (!found.ok) return found.failure;
  if (claim === undefined || found.value === undefined) return undefined;
  const { node, listed, also = [] } = found.value;
  const late = await recordLate(turn, claim, listed);
  if (late !== undefined) return late;
  for (const { storage } of [found.value, ...also]) {
    const excess = budgetFailure(turn, { storage, node });
    if (excess !== undefined) return excess;
  }
  const since = formatTime(deps.clock.nowMs());
  const spec = (turn.claim ?? claim).spec;
  const earlier = earlierNames(spec);
  const allocation = {
    operation: operationId,
    since,
    ...recordOf(found.value),
    ...diskOf(operation),
    ...earlier,
  };
  turn.claim = await deps.ledger.record(turn.claim ?? claim, { allocation });
  return undefined;
}

/**
 * A program that makes a volume ends what it began, also after its worker died and what that left
 * was accounted for. What has come since is judged by the allocation before, while it is known.
 */
async function recordLate(
  turn: ConnectedTurn,
  claim: Claim,
  listed: readonly string[],
): Promise<Failure | undefined> {
  const { allocation: before, volumes = [], otherVolumes = [], probableVolumes = [] } = claim.spec;
  if (before === undefined) return undefined;
  const named = [...volumes, ...otherVolumes, ...probableVolumes].map(({ id }) => id);
  const known = new Set([...before.listed, ...named]);
  if (listed.every((id) => known.has(id))) return undefined;
  const open = withOpenAllocation(claim.spec, turn.deps.clock.nowMs());
  const left = await turn.driver.leftovers(open);
  if (!left.ok) return left.failure;
  const { deps } = turn;
  const found = withLeftovers(claim.spec, left.value);
  const change = probableChange(claim.spec, left.value, deps.clock.nowMs());
  if (found === undefined && change === undefined) return undefined;
  turn.claim = await deps.ledger.record(claim, { ...(found && { volumes: found }), ...change });
  return undefined;
}

/** As many as a Claim holds. Of a longer list nothing is concluded. */
const listedMax = 256;
const alsoMax = 64;
const earlierMax = 16;

/**
 * Names that operations before were to make volumes under, and that are not among the volumes. The
 * request may have been lost on its way, and the volume may appear when nobody waits for it.
 */
function earlierNames({ allocation, volumes = [] }: ClaimSpec): Pick<Allocation, "earlier"> {
  const { earlier: before = [], volume } = allocation ?? {};
  const all = volume === undefined ? before : [...before, volume];
  const earlier = all.filter((name) => !volumes.some(({ id }) => id === name));
  return earlier.length === 0 ? {} : { earlier: earlier.slice(-earlierMax) };
}

/** The one disk that an operation makes: no other that appears meanwhile is its work. */
function diskOf(operation: Operation): Pick<Allocation, "disk"> {
  if (operation.kind === "addDisk") return { disk: operation.disk.name };
  return operation.kind === "moveDisk" ? { disk: operation.disk } : {};
}

function recordOf(found: Allocating): Omit<Allocation, "operation" | "since"> {
  const { node, source, volume, listed, complete, also = [] } = found;
  return {
    node,
    ...sized(found),
    ...(volume === undefined ? {} : { volume }),
    ...(also.length === 0 ? {} : { also: also.slice(0, alsoMax).map(sized) }),
    ...(source === undefined ? {} : { source }),
    listed: listed.slice(0, listedMax),
    complete: complete && guard("allocation-list-whole", listed.length <= listedMax),
  };
}

function sized({ storage, sizeBytes }: NewVolume): { storage: string; size?: string } {
  return { storage, ...(sizeBytes === undefined ? {} : { size: String(sizeBytes) }) };
}

/** A new disk with the record of its allocation: its volume may have a name that is in there. */
export function withAllocation({ claim }: ConnectedTurn, operation: Operation): Operation {
  if (operation.kind !== "addDisk" || claim?.spec.allocation === undefined) return operation;
  const { allocation } = claim.spec;
  return { ...operation, claim: { ...operation.claim, allocation } };
}

/** Nothing was sent, or the hypervisor did nothing: then nothing can have been left. */
export async function closeAllocation(turn: ConnectedTurn, operationId: string): Promise<void> {
  const { claim, deps } = turn;
  const allocation = claim?.spec.allocation;
  if (claim === undefined || allocation === undefined) return;
  if (!guard("allocation-of-operation", allocation.operation === operationId)) return;
  // A volume that is allocated by name is made first: it may exist although the rest was refused.
  if (!guard("named-allocation-stays-open", allocation.volume === undefined)) return;
  const settledAt = formatTime(deps.clock.nowMs());
  turn.claim = await deps.ledger.record(claim, { allocation: { ...allocation, settledAt } });
}

async function allocationOf(
  { driver }: ConnectedTurn,
  operation: Operation,
  id: string,
): Promise<Answer<Allocating | undefined>> {
  if (driver.allocating !== undefined) return driver.allocating(operation, id);
  return answered(newDiskOf(operation));
}

/**
 * Where a driver says nothing of what it is about to make: the disk itself. What the configuration
 * then has in its place is ours because it was asked for, and not because it is there.
 */
function newDiskOf(operation: Operation): Allocating | undefined {
  const unlisted = { listed: [], complete: false };
  switch (operation.kind) {
    case "addDisk":
      return { node: operation.at.node, storage: operation.disk.storage, ...unlisted };
    case "moveDisk":
      return { node: operation.at.node, storage: operation.storage, ...unlisted };
    default:
      return undefined;
  }
}

function budgetFailure(
  { deps, connection }: ConnectedTurn,
  { storage, node }: Pick<Allocating, "storage" | "node">,
): Failure | undefined {
  const isShared = connection.inventory.storages.some((row) => {
    return row.name === storage && row.isShared;
  });
  const held = deps.ledger
    .probableOn(connection.systemId)
    .filter((volume) => volume.storage === storage && (isShared || volume.node === node));
  const bytes = held.reduce((sum, { size }) => sum + Number(size), 0);
  const isWithin = bytes < limits.probableBytesPerStorage;
  if (guard("allocation-within-budget", isWithin)) return undefined;
  const ids = held.map(({ id }) => id);
  return {
    category: "OrphanedVolumes",
    message:
      `Failed attempts probably left ${held.length} volumes with ${humanBytes(bytes, Math.ceil)} ` +
      `on the storage ${storage}. Berth creates nothing more there until they are removed: ` +
      `${listText(ids)}.`,
    remedy:
      "If nobody needs them: berth orphans destroy ID, for each. To let Berth remove such volumes " +
      "by itself, set spec.orphans.policy: DeleteProbable on the Hypervisor.",
  };
}
