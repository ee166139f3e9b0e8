import {
  apiVersion,
  claimKind,
  orphanKind,
  virtualMachineKind,
  vmImageKind,
} from "../../api/index.ts";
import type { Claim, ClaimSpec, VirtualMachine } from "../../api/index.ts";
import type { Seen } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import { objectKey, type KubeObject } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";
import { again, settled, type Outcome } from "../../runtime/index.ts";
import { claimName, isFile, isHeld, isPending } from "../claims/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import { awaitedVolumes } from "./awaited.ts";
import type { Extent } from "./extent.ts";
import type { Find } from "./find.ts";
import { closeHolder, holdersLeft } from "./holders.ts";
import { orphansMax, type SweepMemory } from "./memory.ts";
import { orphanName } from "./orphan-name.ts";
import { claimsInDoubt, claimsLetGo, planFinds, type SweepInput } from "./plan.ts";
import { chooseByPolicy, isKeptMachine } from "./policy.ts";
import { recordedTimes, recordOf, shortenedTimes, writeRecord, type Times } from "./record.ts";
import { claimsOfNothing, planRetiring, retireUnlessThere } from "./retiring.ts";
import { planAbsences, planSightings, type Sighted } from "./sightings.ts";
import { isDeclared, isFileDeclared, type SweepDeps } from "./sweep-deps.ts";
import { takenOn } from "./taken.ts";
import { noteList, noteSurvey } from "./watch.ts";

/** How often is looked whether much less is there; it costs nothing. */
const lookMs = 15_000;
/** A new leader lets the first rush pass. */
const settleInMs = 5_000;
/** After a look that was not whole. */
const retryMs = 60_000;
/** The least pause between two sweeps, whoever asks for one. */
const askedMs = 5_000;
/** A lost request may still take effect for so long. */
const settleMs = 10 * 60_000;

/** One turn of one hypervisor: compares how much is there, and sweeps when it is time. */
export async function reconcileSweep(key: string, deps: SweepDeps): Promise<Outcome> {
  const { sweeps, hypervisors, clock } = deps;
  if (hypervisors.get(key) === undefined) {
    sweeps.forget(key);
    deps.figures.forget(key);
    return settled;
  }
  const view = await viewOf(key, deps);
  if (typeof view === "string") return again(view, lookMs);
  const memory = sweeps.of(key);
  const blocked = JSON.stringify([...blockedBy(deps.vms.byIndex("hypervisor", key))]);
  if (isNews(blocked, memory)) memory.nextAtMs = Math.min(memory.nextAtMs, memory.askedNotBeforeMs);
  const waitMs = Math.max(memory.nextAtMs, deps.beganMs + settleInMs) - clock.nowMs();
  if (waitMs > 0) return again("Waiting", Math.min(waitMs, lookMs));
  const isWhole = await sweeps.share(key, () => sweep(view, deps, memory));
  if (isWhole) memory.blocked = blocked;
  // From its end, as a suspicion counts: else the next sweep is a moment too early to believe it.
  const endMs = clock.nowMs();
  const { sweepSeconds } = view.connection.spec.orphans;
  memory.nextAtMs = endMs + (isWhole ? sweepSeconds * 1000 : retryMs);
  memory.askedNotBeforeMs = endMs + (isWhole ? askedMs : retryMs);
  if (isWhole) wakeAll(key, deps);
  return again("Swept", Math.min(memory.nextAtMs - endMs, lookMs));
}

/**
 * Sweeps for an Orphan, where this process has no whole sweep yet: without one nothing can be
 * decided. False where there is none now. It wakes nobody: each of them would do the same.
 */
export async function sweepFor(key: string, deps: SweepDeps): Promise<boolean> {
  const { sweeps, clock } = deps;
  const memory = sweeps.of(key);
  if (memory.swept !== undefined) return true;
  if (clock.nowMs() < Math.max(memory.nextAtMs, deps.beganMs + settleInMs)) return false;
  const view = await viewOf(key, deps);
  if (typeof view === "string") return false;
  const isWhole = await sweeps.share(key, () => sweep(view, deps, memory));
  if (!isWhole) memory.nextAtMs = clock.nowMs() + retryMs;
  return isWhole;
}

/** A hypervisor that can be swept, with how much its last list shows. */
interface View {
  readonly connection: Connection;
  readonly list: Extent;
}

/** Unreachable or partial is unknown: nothing is concluded, and nothing changes. */
async function viewOf(key: string, deps: SweepDeps): Promise<View | "Unseen" | "Suspicious"> {
  const reach = deps.connections.of(key);
  if (reach.is === "away") return "Unseen";
  const { connection } = reach;
  if (!guard("sweep-whole-inventory", connection.inventory.isComplete)) return "Unseen";
  const { extent: list, isBelieved } = await noteList(connection, deps);
  // No survey would be believed now either.
  return isBelieved ? { connection, list } : "Suspicious";
}

function wakeAll(key: string, { orphans, wakeOrphan }: SweepDeps): void {
  for (const { metadata } of orphans.byIndex("hypervisor", key)) wakeOrphan(metadata.name ?? "");
}

/** Somebody waits for volumes to go who did not before, or does not wait any more. */
function isNews(blocked: string, { blocked: before = "[]" }: SweepMemory): boolean {
  return blocked !== before;
}

/** Looks at everything. False where it was not whole, or is not believed: then nothing changes. */
async function sweep(view: View, deps: SweepDeps, memory: SweepMemory): Promise<boolean> {
  const { connection, list } = view;
  const { systemId, driver } = connection;
  memory.begun += 1;
  const swept = memory.begun;
  const claims = deps.claims.byIndex("system", systemId);
  const known = claims.filter(({ spec }) => {
    return isHeld(spec) && !isPending(spec) && isDeclared(deps, spec);
  });
  const suspects = [
    ...deps.ledger.probableOn(systemId).map(({ id }) => id),
    ...claims.flatMap(({ spec }) => awaitedVolumes(spec)),
  ];
  const survey = await driver.survey(
    known.map(({ spec }) => spec.externalId),
    suspects,
  );
  if (!survey.ok) return false;
  if (!guard("sweep-whole-survey", survey.value.missing.length === 0)) return false;
  const unproven = inputOf(connection, deps, survey.value);
  const seen = await prove(connection, unproven);
  if (seen === undefined) return false;
  const input = { ...unproven, seen };
  const found = planFinds(input);
  const isBelieved = await noteSurvey(connection, deps, { list, input, found });
  if (!guard("sweep-believed-survey", isBelieved)) return false;
  const finds = new Map(found.map((find) => [orphanName(systemId, find), find]));
  const noted = await noteSweep(connection, deps, { finds, input });
  for (const { spec } of claimsLetGo(input)) await releaseClaim(deps, spec);
  for (const left of holdersLeft(input)) {
    await closeHolder(deps.ledger, left, (claim) => hasOwner(deps, claim));
  }
  const { sightings, absences, sweptMs } = noted;
  Object.assign(memory, { finds, sightings, absences, swept, sweptMs });
  await retireEmpty(connection, deps, noted);
  await reportDue(connection, deps, noted.due);
  memory.chosen = chooseByPolicy(connection, deps, finds);
  return true;
}

/** What follows from a sweep and from those before it. */
interface Noted extends Sighted {
  readonly sweptMs: number;
  readonly absences: Times;
  /** Claims that are held for nothing, and since when, by their uids. */
  readonly empty: readonly Claim[];
  readonly emptySince: Times;
}

/** Counts what was seen and not seen, and records it before anything follows from it. */
async function noteSweep(
  connection: Connection,
  deps: SweepDeps,
  { finds, input }: { readonly finds: ReadonlyMap<string, Find>; readonly input: SweepInput },
): Promise<Noted> {
  const { name, spec } = connection;
  const sweptMs = deps.clock.nowMs();
  const graceMs = spec.orphans.graceSeconds * 1000;
  const record = recordOf(deps.hypervisors.get(name), sweptMs);
  const before = recordedTimes(record.sightings, finds.keys());
  const sighted = planSightings({ finds, before, nowMs: sweptMs, graceMs });
  const absent = absentKept(name, deps, finds);
  const absences = planAbsences(absent, recordedTimes(record.absences, absent), sweptMs);
  const empty = emptyClaims(connection, deps, input);
  const uids = empty.map(({ metadata }) => metadata.uid ?? "");
  const emptySince = planRetiring(empty, recordedTimes(record.emptyClaims, uids), sweptMs);
  const unreported = [...sighted.sightings].filter(([orphan]) => !isReported(deps, orphan));
  await writeRecord(deps, name, {
    ...record,
    sightings: shortenedTimes(new Map(unreported.map(([one, { firstMs }]) => [one, firstMs]))),
    absences: shortenedTimes(absences),
    emptyClaims: shortenedTimes(emptySince),
  });
  return { ...sighted, sweptMs, absences, empty, emptySince };
}

/** Its Orphan says by itself since when it is there. */
function isReported({ orphans }: SweepDeps, orphan: string): boolean {
  return orphans.get(orphan)?.status?.firstSeenAt !== undefined;
}

/** Orphans that a person keeps, and of which this look shows nothing. */
function absentKept(
  hypervisor: string,
  { orphans }: SweepDeps,
  finds: ReadonlyMap<string, Find>,
): string[] {
  const claims = new Set([...finds.values()].map(({ claim }) => claim));
  const kept = orphans.byIndex("hypervisor", hypervisor).filter((orphan) => {
    const isPartThere = isKeptMachine(orphan) && claims.has(orphan.status?.claim);
    return orphan.spec.decision === "Keep" && !isPartThere;
  });
  return kept.map(({ metadata }) => metadata.name ?? "").filter((name) => !finds.has(name));
}

function inputOf(
  { name, systemId, capabilities }: Connection,
  deps: SweepDeps,
  survey: SweepInput["survey"],
): SweepInput {
  const vms = deps.vms.list();
  const identities = vms.flatMap(({ status }) => status?.identity ?? []);
  return {
    survey,
    installation: deps.ledger.installation,
    // For one that is Pending nothing was made: what is there is not its object's.
    claims: deps.claims.byIndex("system", systemId).filter(({ spec }) => !isPending(spec)),
    isDeclared: (claim) => isDeclared(deps, claim),
    identities: new Set(identities),
    seen: new Map(),
    files: deps.claims.byIndex("file", systemId),
    isFileDeclared: (claim) => isFileDeclared(deps, claim),
    imageFiles: new Set(deps.images.list().map(deps.imageFileOf)),
    taken: takenOn(name, vms),
    blocked: blockedBy(deps.vms.byIndex("hypervisor", name)),
    mayUnlock: capabilities.includes("Unlock"),
  };
}

/** Ids whose leftover volumes keep a declared machine from being made. */
function blockedBy(vms: readonly VirtualMachine[]): Map<string, string[]> {
  const blocked = new Map<string, string[]>();
  for (const vm of vms) {
    const id = blockedId(vm);
    if (id !== undefined) blocked.set(id, [...(blocked.get(id) ?? []), objectKey(vm.metadata)]);
  }
  return blocked;
}

/** The id under which volumes exist that a declared VM waits for to go. */
export function blockedId({ spec, status }: VirtualMachine): string | undefined {
  const isBlocked = status?.failure?.category === "OrphanedVolumes";
  return isBlocked ? (spec.externalId ?? status.externalId) : undefined;
}

/** What stands under Claims whose object is gone, or whose machine is locked. */
async function prove(
  { driver }: Connection,
  input: SweepInput,
): Promise<Map<string, Seen> | undefined> {
  const seen = new Map<string, Seen>();
  for (const { spec } of claimsInDoubt(input)) {
    const sinceMs = Date.parse(spec.reservedAt ?? "") || 0;
    const sight = await driver.observe(spec, { sinceMs });
    if (!guard("sweep-proven-claims", sight.at !== "unknown")) return undefined;
    seen.set(spec.externalId, sight);
  }
  return seen;
}

/** The ledger follows the mark. Whether nobody holds the Claim is asked of the server first. */
async function releaseClaim(deps: SweepDeps, { hypervisor, externalId }: ClaimSpec): Promise<void> {
  const claim = await deps.ledger.read(hypervisor.systemId, externalId);
  if (claim === undefined || !isHeld(claim.spec)) return;
  if (!guard("sweep-release-ownerless", !(await hasOwner(deps, claim.spec)))) return;
  await deps.ledger.release(claim, "its mark says that it was let go, and its object is gone");
}

/** Claims that nothing stands under any more, while an Orphan that would see to it is gone. */
function emptyClaims({ name }: Connection, { orphans }: SweepDeps, input: SweepInput): Claim[] {
  const seenTo = new Set(orphans.byIndex("hypervisor", name).map(({ spec }) => spec.externalId));
  return claimsOfNothing(input).filter(({ spec }) => !seenTo.has(spec.externalId));
}

async function retireEmpty(
  connection: Connection,
  deps: SweepDeps,
  { empty, emptySince }: Noted,
): Promise<void> {
  const nowMs = deps.clock.nowMs();
  const graceMs = connection.spec.orphans.graceSeconds * 1000;
  for (const { metadata, spec } of empty) {
    const sinceMs = emptySince.get(metadata.uid ?? "") ?? nowMs;
    const isOld = nowMs - sinceMs >= Math.max(graceMs, settleMs);
    if (!guard("sweep-retire-after-grace", isOld)) continue;
    const { externalId } = spec;
    await retireUnlessThere(connection, deps.ledger, {
      externalId,
      hasOwner: (claim) => hasOwner(deps, claim.spec),
    });
  }
}

async function hasOwner({ client }: SweepDeps, claim: ClaimSpec): Promise<boolean> {
  const { namespace, name, uid } = claim.owner;
  const objects = isFile(claim) ? client.of(vmImageKind) : client.of(virtualMachineKind);
  const owner = await unlessGone<KubeObject>(() => objects.get({ namespace, name }));
  return owner !== undefined && owner.metadata.uid === uid;
}

/** Makes the Orphans that are due. Each is asked for at the server before it is called nobody's. */
async function reportDue(
  connection: Connection,
  deps: SweepDeps,
  due: readonly string[],
): Promise<void> {
  const { name, systemId } = connection;
  const { finds } = deps.sweeps.of(name);
  const told = deps.orphans.byIndex("hypervisor", name);
  let room = orphansMax - told.filter(({ spec }) => spec.decision !== "Keep").length;
  let unreported = 0;
  for (const orphan of due) {
    const find = finds.get(orphan);
    if (find === undefined || deps.orphans.get(orphan) !== undefined) continue;
    if (room <= (find.blocks.length === 0 ? 0 : -orphansMax)) {
      unreported += 1;
      continue;
    }
    // What is probably ours is reported also while its VM is declared.
    const isSuspect = find.ownership === "Probable";
    const isUnclaimed = isSuspect || !(await isClaimed(deps, systemId, find));
    if (!guard("sweep-record-unclaimed", isUnclaimed)) continue;
    room -= 1;
    await create(connection, deps, { orphan, find });
  }
  const record = recordOf(deps.hypervisors.get(name), deps.clock.nowMs());
  await writeRecord(deps, name, { ...record, unreported });
}

async function create(
  { name: hypervisor }: Connection,
  deps: SweepDeps,
  { orphan, find }: { readonly orphan: string; readonly find: Find },
): Promise<void> {
  const { kind, externalId } = find;
  try {
    const made = await deps.client.of(orphanKind).create({
      apiVersion,
      kind: "Orphan",
      metadata: { name: orphan },
      spec: { hypervisor, kind, externalId },
    });
    const message =
      `Found on ${hypervisor}, and nothing declares it: ${kind} ${externalId}. ` +
      "See berth orphans.";
    deps.events.event(made, { type: "Warning", reason: "OrphanFound", message });
  } catch (error) {
    if (!(error instanceof ApiError) || error.reason !== "AlreadyExists") throw error;
  }
}

/** Whether the server knows an owner of what a copy of its objects here did not know. */
async function isClaimed(
  deps: SweepDeps,
  systemId: string,
  { kind, claim, externalId }: Find,
): Promise<boolean> {
  if (kind !== "Machine" && claim === undefined) return false;
  const name = claim ?? claimName(systemId, externalId);
  const found = await unlessGone(() => deps.client.of(claimKind).get({ name }));
  if (found === undefined || !isHeld(found.spec) || isPending(found.spec)) return false;
  // A lock is found on a machine that is declared.
  return kind !== "Lock" && (await hasOwner(deps, found.spec));
}

export async function unlessGone<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error;
    return undefined;
  }
}
