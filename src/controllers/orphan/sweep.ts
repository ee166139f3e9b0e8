import { apiVersion, claimKind, orphanKind, virtualMachineKind } from "../../api/index.ts";
import type { ClaimSpec, VirtualMachine } from "../../api/index.ts";
import type { Seen } from "../../hypervisor/index.ts";
import { objectKey } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";
import { again, settled, type Outcome } from "../../runtime/index.ts";
import { claimName, isHeld } from "../claims/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import type { Find } from "./find.ts";
import { orphansMax, type SweepMemory } from "./memory.ts";
import { orphanName } from "./orphan-name.ts";
import { claimsInDoubt, claimsLetGo, planFinds, type SweepInput } from "./plan.ts";
import { chooseByPolicy, isKeptMachine } from "./policy.ts";
import { claimsOfNothing, planRetiring, retireUnlessThere } from "./retiring.ts";
import { planAbsences, planSightings } from "./sightings.ts";
import { isDeclared, type SweepDeps } from "./sweep-deps.ts";
import { takenOn } from "./taken.ts";
import { isListSuspicious, isSurveySuspicious } from "./watch.ts";

/** How often is looked whether much less is there; it costs nothing. */
const lookMs = 15_000;
/** A new leader lets the first rush pass. */
const firstMs = 5_000;
/** After a look that was not whole. */
const retryMs = 60_000;
/** A lost request may still take effect for so long. */
const settleMs = 10 * 60_000;

/** One turn of one hypervisor: compares how much is there, and sweeps when it is time. */
export async function reconcileSweep(key: string, deps: SweepDeps): Promise<Outcome> {
  const { sweeps, hypervisors, connections, clock } = deps;
  if (hypervisors.get(key) === undefined) {
    sweeps.forget(key);
    deps.figures.forget(key);
    return settled;
  }
  const reach = connections.of(key);
  // Unreachable or partial is unknown: nothing is concluded, and nothing changes.
  if (reach.is === "away" || !reach.connection.inventory.isComplete) return again("Unseen", lookMs);
  const { connection } = reach;
  const memory = sweeps.of(key);
  const nowMs = clock.nowMs();
  greet(memory, nowMs);
  if (isListSuspicious(connection, deps, memory)) return again("Suspicious", lookMs);
  const blocked = JSON.stringify([...blockedBy(deps.vms.byIndex("hypervisor", key))]);
  const waitMs = isNews(blocked, memory) ? 0 : memory.nextAtMs - nowMs;
  if (waitMs > 0) return again("Waiting", Math.min(waitMs, lookMs));
  const isWhole = await sweep(connection, deps, memory);
  if (isWhole) memory.blocked = blocked;
  memory.nextAtMs = nowMs + (isWhole ? connection.spec.orphans.sweepSeconds * 1000 : retryMs);
  return again("Swept", Math.min(memory.nextAtMs - nowMs, lookMs));
}

/** The first look of this process. */
function greet(memory: SweepMemory, nowMs: number): void {
  if (memory.sinceMs !== undefined) return;
  memory.sinceMs = nowMs;
  memory.nextAtMs = Math.max(memory.nextAtMs, nowMs + firstMs);
}

/** Somebody waits for volumes to go who did not before, or does not wait any more. */
function isNews(blocked: string, { blocked: before = "[]" }: SweepMemory): boolean {
  return blocked !== before;
}

/** Looks at everything. False where it was not whole, or is not believed: then nothing changes. */
async function sweep(
  connection: Connection,
  deps: SweepDeps,
  memory: SweepMemory,
): Promise<boolean> {
  const { name, systemId, driver } = connection;
  memory.begun += 1;
  const swept = memory.begun;
  const known = deps.claims
    .byIndex("system", systemId)
    .filter(({ spec }) => isHeld(spec) && isDeclared(deps, spec));
  const survey = await driver.survey(known.map(({ spec }) => spec.externalId));
  if (!survey.ok || survey.value.missing.length > 0) return false;
  const input = inputOf(connection, deps, survey.value);
  const seen = await prove(connection, input);
  if (seen === undefined) return false;
  const found = planFinds({ ...input, seen });
  if (isSurveySuspicious(connection, deps, { input, found })) return false;
  for (const { spec } of claimsLetGo({ ...input, seen })) await releaseClaim(deps, spec);
  const finds = new Map(found.map((find) => [orphanName(systemId, find), find]));
  const nowMs = deps.clock.nowMs();
  const graceMs = connection.spec.orphans.graceSeconds * 1000;
  const { sightings, due } = planSightings({ finds, before: memory.sightings, nowMs, graceMs });
  const absent = absentKept(name, deps, finds);
  const absences = planAbsences(absent, memory.absences, nowMs);
  Object.assign(memory, { finds, sightings, absences, swept });
  await retireEmpty(connection, deps, { input, memory });
  await record(connection, deps, due);
  memory.chosen = chooseByPolicy(connection, deps, memory);
  const orphans = deps.orphans.byIndex("hypervisor", name);
  for (const { metadata } of orphans) deps.wakeOrphan(metadata.name ?? "");
  return true;
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
    claims: deps.claims.byIndex("system", systemId),
    isDeclared: (claim) => isDeclared(deps, claim),
    identities: new Set(identities),
    seen: new Map(),
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

/** The id that a machine cannot have because of volumes that stand under it. */
export function blockedId({ spec, status }: VirtualMachine): string | undefined {
  return status?.failure?.category === "OrphanedVolumes" ? spec.externalId : undefined;
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
    if (sight.at === "unknown") return undefined;
    seen.set(spec.externalId, sight);
  }
  return seen;
}

/** The ledger follows the mark. Whether nobody holds the Claim is asked of the server first. */
async function releaseClaim(deps: SweepDeps, { hypervisor, externalId }: ClaimSpec): Promise<void> {
  const claim = await deps.ledger.read(hypervisor.systemId, externalId);
  if (claim === undefined || !isHeld(claim.spec) || (await hasOwner(deps, claim.spec))) return;
  await deps.ledger.release(claim, "its mark says that it was let go, and its object is gone");
}

/** A Claim that nothing stands under any more, while an Orphan that would see to it is gone. */
async function retireEmpty(
  connection: Connection,
  deps: SweepDeps,
  { input, memory }: { readonly input: SweepInput; readonly memory: SweepMemory },
): Promise<void> {
  const nowMs = deps.clock.nowMs();
  const seenTo = new Set(
    deps.orphans.byIndex("hypervisor", connection.name).map(({ spec }) => spec.externalId),
  );
  const empty = claimsOfNothing(input).filter(({ spec }) => !seenTo.has(spec.externalId));
  memory.emptySince = planRetiring(empty, memory.emptySince, nowMs);
  const graceMs = connection.spec.orphans.graceSeconds * 1000;
  for (const { metadata, spec } of empty) {
    const sinceMs = memory.emptySince.get(metadata.uid ?? "") ?? nowMs;
    if (nowMs - sinceMs < Math.max(graceMs, settleMs)) continue;
    const { externalId } = spec;
    await retireUnlessThere(connection, deps.ledger, {
      externalId,
      hasOwner: (claim) => hasOwner(deps, claim.spec),
    });
  }
}

async function hasOwner({ client }: SweepDeps, { owner }: ClaimSpec): Promise<boolean> {
  const { namespace, name, uid } = owner;
  const vm = await unlessGone(() => client.of(virtualMachineKind).get({ namespace, name }));
  return vm !== undefined && vm.metadata.uid === uid;
}

/** Makes the Orphans that are due. Each is asked for at the server before it is called nobody's. */
async function record(
  connection: Connection,
  deps: SweepDeps,
  due: readonly string[],
): Promise<void> {
  const { name, systemId } = connection;
  const memory = deps.sweeps.of(name);
  const told = deps.orphans.byIndex("hypervisor", name);
  let room = orphansMax - told.filter(({ spec }) => spec.decision !== "Keep").length;
  let untold = 0;
  for (const orphan of due) {
    const find = memory.finds.get(orphan);
    if (find === undefined || deps.orphans.get(orphan) !== undefined) continue;
    if (room <= 0 && find.blocks.length === 0) {
      untold += 1;
      continue;
    }
    if (await isClaimed(deps, systemId, find)) continue;
    room -= 1;
    await create(connection, deps, { orphan, find });
  }
  memory.untold = untold;
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
  if (found === undefined || !isHeld(found.spec)) return false;
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
