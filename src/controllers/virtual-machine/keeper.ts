import type { Claim, ClaimSpec } from "../../api/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { again, type Outcome } from "../../runtime/index.ts";
import { isHeld, isPending, type Ledger, type Reservation } from "../claims/index.ts";
import { combined } from "../failures/index.ts";
import { isFollowed } from "../../hypervisor/index.ts";
import { failVm } from "./failing.ts";
import type { KeeperView, Next } from "./next.ts";
import { idFailures, listedBy } from "./look-ahead.ts";
import { idsToAvoid } from "./propose-id.ts";
import { tellFollowed } from "./tell-end.ts";
import { isDeleting, type ConnectedTurn, type Turn } from "./turn.ts";

/** It takes nothing that a quota counts: what it holds was another's, and is again. */
const noResources = { cpu: 0, memory: "0", storage: "0" };

/** The Claim of the keeper that the object's own Claim names, if it is held for this object. */
export async function findKeeper({ deps, claim }: Turn): Promise<Claim | undefined> {
  const named = claim?.spec.diskHolder;
  if (claim === undefined || named === undefined) return undefined;
  const { systemId } = claim.spec.hypervisor;
  const found = await deps.ledger.read(systemId, named.externalId);
  const isIt = found !== undefined && isFor(found.spec, claim.spec) && !isPending(found.spec);
  return isIt ? found : undefined;
}

/** A keeper that is only reserved is given up with whoever was to hand disks to it. */
export async function dropPendingKeeper(ledger: Ledger, { spec }: Claim): Promise<void> {
  const { diskHolder: named, hypervisor } = spec;
  if (named === undefined) return;
  const found = await ledger.read(hypervisor.systemId, named.externalId);
  if (found === undefined || !isFor(found.spec, spec)) return;
  if (isPending(found.spec)) await ledger.remove(found);
}

function isFor(keeper: ClaimSpec, { owner, installation, diskHolder: named }: ClaimSpec): boolean {
  const isOurs = keeper.installation === installation && keeper.owner.uid === owner.uid;
  const isIt = keeper.role === "DiskHolder" && keeper.identity === named?.identity;
  return isHeld(keeper) && isOurs && isIt;
}

/** What stands under the keeper's Claim. Its power is never asked for: it has none. */
export async function lookAtKeeper(turn: ConnectedTurn): Promise<KeeperView | undefined> {
  const { keeper, driver } = turn;
  if (keeper === undefined) return undefined;
  const { spec } = keeper;
  const since = spec.reservedAt === undefined ? {} : { sinceMs: Date.parse(spec.reservedAt) };
  return { claim: spec, seen: await driver.observe(spec, { withoutPower: true, ...since }) };
}

/**
 * Chooses a keeper and reserves it. Which one it is stands in the object's own Claim before the
 * keeper has one, so that no crash can make a second.
 */
export async function chooseKeeper(
  turn: ConnectedTurn,
  { from }: Next & { do: "keep" },
): Promise<Outcome> {
  const { claim, deps, driver, connection } = turn;
  if (claim === undefined) return again("NotClaimed");
  const { diskHolder: named } = claim.spec;
  if (named !== undefined) return reserveKeeper(turn, claim, named);
  const known = deps.ledger
    .keepersFor(claim.spec.owner.namespace, connection.systemId)
    .find((keeper) => isUsable(keeper, claim.spec, from));
  if (known === undefined && from !== undefined) return again("KeeperGone");
  if (known !== undefined) {
    const { externalId, identity } = known;
    turn.claim = await deps.ledger.record(claim, { diskHolder: { externalId, identity } });
    return again("KeeperChosen");
  }
  const id = await driver.propose(idsToAvoid(turn));
  if (!id.ok) return failVm(turn, id.failure);
  const keeper = { externalId: id.value, identity: deps.random.uuid() };
  turn.claim = await deps.ledger.record(claim, { diskHolder: keeper });
  return again("KeeperChosen");
}

/** The one that is meant; else one that was let go on this node, for an object of this name. */
function isUsable(
  keeper: ClaimSpec,
  { owner, node }: ClaimSpec,
  from: string | undefined,
): boolean {
  if (from !== undefined) return keeper.externalId === from;
  return (
    isLetGo(keeper) &&
    keeper.everExisted &&
    keeper.owner.name === owner.name &&
    keeper.node === node
  );
}

async function reserveKeeper(
  turn: ConnectedTurn,
  claim: Claim,
  { externalId, identity }: NonNullable<ClaimSpec["diskHolder"]>,
): Promise<Outcome> {
  const { deps, connection, vm } = turn;
  const there = await deps.ledger.read(connection.systemId, externalId);
  if (there === undefined) {
    // A new one is made to give disks to, and never to take any from.
    return isDeleting(vm) ? reserveNew(turn, claim) : giveUpKeeper(turn, claim);
  }
  const { spec } = there;
  if (isFor(spec, claim.spec)) {
    return isPending(spec) ? prepareKeeper(turn, claim, there) : again("KeeperReserved");
  }
  // What somebody else has, or what rests, is of no use.
  const isIt = isLetGo(spec) && spec.identity === identity;
  return isIt ? takeUp(turn, claim, spec) : giveUpKeeper(turn, claim);
}

async function takeUp(turn: ConnectedTurn, claim: Claim, there: ClaimSpec): Promise<Outcome> {
  const { node = "", otherVolumes = [], driver } = there;
  const reservation = reservationOf(turn, claim, node);
  const listed = { otherVolumes, ...(driver === undefined ? {} : { driver }) };
  const kept = { role: "DiskHolder", ...listed, ...keptOf(there, claim.spec) } as const;
  return concludeKeeper(turn, claim, { ...reservation, kept });
}

function isLetGo({ role, state }: ClaimSpec): boolean {
  return role === "DiskHolder" && state === "Released";
}

async function reserveNew(turn: ConnectedTurn, claim: Claim): Promise<Outcome> {
  const { node = "" } = claim.spec;
  const reservation = { ...reservationOf(turn, claim, node), isPending: true };
  const reserved = await turn.deps.ledger.reserve(reservation);
  if (reserved.is !== "ours") return giveUpKeeper(turn, claim);
  return prepareKeeper(turn, claim, reserved.claim);
}

/** Its id is free, and nothing lies under it: only then is it made. */
async function prepareKeeper(turn: ConnectedTurn, claim: Claim, pending: Claim): Promise<Outcome> {
  const { deps, driver } = turn;
  const { node = "" } = claim.spec;
  const found = await driver.preflight({ claim: pending.spec, node, shape: {}, disks: [] });
  if (found.findings.some(({ category }) => idFailures.has(category))) {
    await deps.ledger.retire(pending);
    return giveUpKeeper(turn, claim);
  }
  if (found.findings.length > 0) return failVm(turn, combined(found.findings));
  const { driver: notes } = listedBy(found);
  turn.keeper = await deps.ledger.record(pending, {
    preflight: "Passed",
    ...(notes === undefined ? {} : { driver: notes }),
  });
  return again("KeeperReserved");
}

function reservationOf(
  { connection, vm }: ConnectedTurn,
  { spec }: Claim,
  node: string,
): Reservation {
  const { externalId = "", identity = "" } = spec.diskHolder ?? {};
  const { name, systemId } = connection;
  return {
    vm,
    hypervisor: { name, systemId },
    externalId,
    idChosenBy: "Berth",
    identity,
    node,
    resources: noResources,
    otherVolumes: [],
    kept: { role: "DiskHolder" },
  };
}

/** It stays the keeper of the name that stands in its mark, whoever takes it up. */
function keptOf(
  { everExisted, volumes = [], owner }: ClaimSpec,
  { owner: { uid } }: ClaimSpec,
): Pick<ClaimSpec, "everExisted" | "volumes" | "owner"> {
  return { everExisted, volumes, owner: { ...owner, ...(uid === undefined ? {} : { uid }) } };
}

async function concludeKeeper(
  turn: ConnectedTurn,
  claim: Claim,
  reservation: Reservation,
): Promise<Outcome> {
  const reserved = await turn.deps.ledger.reserve(reservation);
  if (reserved.is !== "ours") return giveUpKeeper(turn, claim);
  turn.keeper = reserved.claim;
  return again("KeeperReserved");
}

async function giveUpKeeper(turn: ConnectedTurn, claim: Claim): Promise<Outcome> {
  await dropPendingKeeper(turn.deps.ledger, claim);
  turn.claim = await turn.deps.ledger.forgetKeeper(claim);
  return again("KeeperGivenUp");
}

/** The keeper's own Claim first: should a crash come between, the other still leads to it. */
export async function dropKeeper(
  turn: ConnectedTurn,
  { how, why }: Next & { do: "dropKeeper" },
): Promise<Outcome> {
  const { deps, claim, keeper, key } = turn;
  if (claim === undefined) return again("NotClaimed");
  if (keeper !== undefined && how === "Retire") await deps.ledger.retire(keeper);
  if (keeper !== undefined && how === "Release") {
    const reason = why ?? `it keeps disks of the VirtualMachine ${key}`;
    await deps.ledger.release(keeper, reason.slice(0, 1024));
  }
  if (keeper === undefined) await dropPendingKeeper(deps.ledger, claim);
  turn.claim = await deps.ledger.forgetKeeper(claim);
  turn.keeper = undefined;
  return again("KeeperClosed");
}

/** Writes down in the keeper's Claim what was seen of it. */
export async function recordKeeper(
  turn: ConnectedTurn,
  { change }: Next & { do: "recordKeeper" },
): Promise<void> {
  const { keeper, deps } = turn;
  if (keeper === undefined) return;
  const isBinding = change.state === "Bound" && keeper.spec.boundAt === undefined;
  const boundAt = isBinding ? { boundAt: formatTime(deps.clock.nowMs()) } : {};
  const known = new Set(keeper.spec.volumes?.filter(isFollowed).map(({ disk }) => disk));
  const followed = change.volumes?.filter((one) => isFollowed(one) && !known.has(one.disk)) ?? [];
  turn.keeper = await deps.ledger.record(keeper, { ...change, ...boundAt });
  for (const { id, disk = "" } of followed) tellFollowed(turn, keeper.spec, { id, disk });
}
