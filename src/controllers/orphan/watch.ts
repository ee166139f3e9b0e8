import { isHeld } from "../claims/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import { extentOf, extentOfSurvey, missingFrom, planSuspicion, type Extent } from "./extent.ts";
import type { Find } from "./find.ts";
import { suspicionText, type SweepMemory, type Watch } from "./memory.ts";
import type { SweepInput } from "./plan.ts";
import type { SweepDeps } from "./sweep-deps.ts";

/** Looks that are so far apart and show the same are believed. */
const believeMs = 60_000;

/** Whether the list that each tick reads shows suddenly much less. */
export function isListSuspicious(
  connection: Connection,
  deps: SweepDeps,
  memory: SweepMemory,
): boolean {
  const known = knownOf(connection, deps, memory.list);
  const now = { ...extentOf(connection.inventory, known), taken: known.taken };
  memory.list = noted(connection, deps, { memory, watch: memory.list, now });
  deps.figures.suspicious(connection.name, deps.clock.nowMs() < memory.quietUntilMs);
  return memory.list.suspicion !== undefined;
}

/**
 * Whether a sweep shows suddenly much less: than the sweep before, or than the list that each tick
 * reads. While it shows much less than that list, which is only seconds old, it is not believed.
 */
export function isSurveySuspicious(
  connection: Connection,
  deps: SweepDeps,
  { input, found }: { readonly input: SweepInput; readonly found: readonly Find[] },
): boolean {
  const memory = deps.sweeps.of(connection.name);
  const { held, taken } = knownOf(connection, deps, memory.list);
  const extent = extentOfSurvey(input.survey, found);
  // What an object has taken as its own since then is not loose any more.
  const declared = input.claims.filter(({ spec }) => isHeld(spec) && input.isDeclared(spec));
  const named = declared.flatMap(({ spec }) => (spec.volumes ?? []).map(({ id }) => id));
  const listed = new Set([...extent.listed, ...named]);
  const now = { ...extent, listed, held, taken };
  const { extent: list } = memory.list;
  const floor = list && { machines: list.machines, held: list.held };
  memory.survey = noted(connection, deps, { memory, watch: memory.survey, now, floor });
  return memory.survey.suspicion !== undefined;
}

/** What Berth holds, let go, and takes away, as far as it concerns how much is there. */
function knownOf(
  { name, systemId }: Connection,
  { ledger, orphans, vms }: SweepDeps,
  watch: Watch,
): { held: string[]; left: string[]; taken: Set<string> } {
  const heldBefore = (watch.suspicion?.extent ?? watch.extent)?.held ?? [];
  const held = ledger.heldOn(systemId).map(({ externalId }) => externalId);
  const left = missingFrom(held, [...ledger.idsOn(systemId), ...heldBefore]);
  const leaving = vms.byIndex("hypervisor", name).flatMap(({ metadata, status }) => {
    return metadata.deletionTimestamp === undefined ? [] : (status?.externalId ?? []);
  });
  const destroyed = orphans.byIndex("hypervisor", name).flatMap(({ spec, status }) => {
    const isGoing = status?.operation?.step === "Destroy" || status?.reclaimed !== undefined;
    return isGoing ? [spec.externalId] : [];
  });
  return { held, left, taken: new Set([...leaving, ...destroyed]) };
}

interface Look {
  readonly memory: SweepMemory;
  readonly watch: Watch;
  readonly now: Extent;
  /** What has to be there, whatever a look of this kind showed before. */
  readonly floor?: Pick<Extent, "machines" | "held"> | undefined;
}

/** Compares one look with those before, and tells it where less is there. */
function noted(
  { name, spec }: Connection,
  { clock, events, hypervisors }: SweepDeps,
  { memory, watch, now, floor }: Look,
): Watch {
  const nowMs = clock.nowMs();
  const next = planWatch(watch, { now, floor, nowMs });
  if (next.suspicion === undefined || next.suspicion === watch.suspicion) return next;
  memory.quietUntilMs = nowMs + spec.orphans.graceSeconds * 1000;
  memory.chosen = undefined;
  const message = suspicionText(next.suspicion.gone);
  const isTold = watch.suspicion !== undefined && message === suspicionText(watch.suspicion.gone);
  const hypervisor = isTold ? undefined : hypervisors.get(name);
  if (hypervisor) events.event(hypervisor, { type: "Warning", reason: "SuspiciousSweep", message });
  return next;
}

/** What is believed after another look. What goes on being so is believed after a while. Pure. */
export function planWatch(
  watch: Watch,
  { now, floor, nowMs }: Pick<Look, "now" | "floor"> & { readonly nowMs: number },
): Watch {
  const old = watch.suspicion?.extent ?? watch.extent ?? now;
  const gone = planSuspicion({ ...old, ...floor }, now);
  if (gone.length > 0) return { ...watch, suspicion: { sinceMs: nowMs, gone, extent: now } };
  const { suspicion } = watch;
  const isBelieved = suspicion === undefined || nowMs - suspicion.sinceMs >= believeMs;
  return isBelieved ? { extent: now } : watch;
}
