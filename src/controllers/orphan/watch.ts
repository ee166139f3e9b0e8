import { isHeld } from "../claims/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import { expectedExtent } from "./expected.ts";
import { extentOf, extentOfSurvey, goneFrom, missingFrom, type Extent } from "./extent.ts";
import type { Find } from "./find.ts";
import type { SweepInput } from "./plan.ts";
import { recordOf, writeRecord, type Suspicion } from "./record.ts";
import { isBelieved, isCovered, planSuspicion, type Lack } from "./suspicion.ts";
import type { SweepDeps } from "./sweep-deps.ts";
import { suspicionText } from "./trouble.ts";

/** How much is there. */
export interface Listed {
  readonly extent: Extent;
  readonly isBelieved: boolean;
}

const nothing: Extent = { machines: [], nodes: [], storages: [], held: [] };

/** How much the list that each tick reads shows, and whether that is suddenly much less. */
export async function noteList(connection: Connection, deps: SweepDeps): Promise<Listed> {
  const memory = deps.sweeps.of(connection.name);
  const known = knownOf(connection, deps, memory.list);
  const now = { ...extentOf(connection.inventory, known), taken: known.taken };
  const before = memory.list;
  memory.list = now;
  // Volumes and files are in no such list.
  const { loose: _loose, ...expected } = expectedOf(connection, deps, now);
  const sudden = before === undefined ? [] : goneFrom(before, now);
  const standing = goneFrom(expected, now);
  return {
    extent: now,
    isBelieved: await note(connection, deps, { standing, sudden, of: "List" }),
  };
}

/**
 * Whether a sweep can be believed: it shows not suddenly much less than the sweep before, or than
 * the list that each tick reads. While it shows much less than that list, which is only seconds
 * old, it is not believed.
 */
export async function noteSurvey(
  connection: Connection,
  deps: SweepDeps,
  { list, input, found }: { list: Extent; input: SweepInput; found: readonly Find[] },
): Promise<boolean> {
  const memory = deps.sweeps.of(connection.name);
  const { held, taken } = knownOf(connection, deps, memory.list);
  const extent = extentOfSurvey(input.survey, found);
  // What an object has taken as its own since then is not loose any more.
  const declared = input.claims.filter(({ spec }) => isHeld(spec) && input.isDeclared(spec));
  const named = declared.flatMap(({ spec }) => (spec.volumes ?? []).map(({ id }) => id));
  const listed = new Set([...extent.listed, ...named]);
  const now = { ...extent, listed, held, taken };
  const before = memory.survey;
  memory.survey = now;
  const floor = { ...nothing, machines: list.machines, held: list.held };
  const short = goneFrom(floor, now).map((one) => ({ ...one, kind: "Survey" }) as const);
  // What else objects say is there, the list was compared with.
  const { loose = [] } = expectedOf(connection, deps, now);
  const standing = [...goneFrom({ ...nothing, loose }, now), ...short];
  const sudden = before === undefined ? [] : goneFrom(before, now);
  return note(connection, deps, { standing, sudden, of: "Survey" });
}

function expectedOf(connection: Connection, deps: SweepDeps, now: Extent): Extent {
  const record = recordOf(deps.hypervisors.get(connection.name), deps.clock.nowMs());
  return expectedExtent(connection, deps, { now, record });
}

/** What Berth holds, let go, and takes away, as far as it concerns how much is there. */
function knownOf(
  { name, systemId }: Connection,
  { ledger, orphans, vms }: SweepDeps,
  before: Extent | undefined,
): { held: string[]; left: string[]; taken: Set<string> } {
  const held = ledger.heldOn(systemId).map(({ externalId }) => externalId);
  const left = missingFrom(held, [...ledger.idsOn(systemId), ...(before?.held ?? [])]);
  const leaving = vms.byIndex("hypervisor", name).flatMap(({ metadata, status }) => {
    return metadata.deletionTimestamp === undefined ? [] : (status?.externalId ?? []);
  });
  const destroyed = orphans.byIndex("hypervisor", name).flatMap(({ spec, status }) => {
    const isGoing = status?.operation?.step === "Destroy" || status?.reclaimed !== undefined;
    return isGoing ? [spec.externalId] : [];
  });
  return { held, left, taken: new Set([...leaving, ...destroyed]) };
}

/** Records what one look lacks, and tells it where that is news. Resolves with what is believed. */
async function note(
  { name, spec }: Connection,
  deps: SweepDeps,
  lack: Pick<Lack, "standing" | "sudden" | "of">,
): Promise<boolean> {
  const nowMs = deps.clock.nowMs();
  const graceMs = spec.orphans.graceSeconds * 1000;
  const record = recordOf(deps.hypervisors.get(name), nowMs);
  const { suspicion: before } = record;
  const suspicion = planSuspicion(before, { ...lack, nowMs, graceMs });
  if (suspicion !== before) await writeRecord(deps, name, { ...record, suspicion });
  if (suspicion !== undefined && suspicion.sinceMs !== before?.sinceMs) {
    deps.sweeps.of(name).chosen = undefined;
    tell(deps, name, { before, suspicion });
  }
  const isQuiet = suspicion !== undefined && nowMs - suspicion.sinceMs < graceMs;
  deps.figures.suspicious(name, isQuiet);
  return suspicion === undefined || isBelieved(suspicion, { nowMs, of: lack.of });
}

function tell(
  { hypervisors, events }: SweepDeps,
  name: string,
  { before, suspicion }: { before: Suspicion | undefined; suspicion: Suspicion },
): void {
  const isNews = suspicion.gone.some((one) => !isCovered(one, before?.gone ?? []));
  const hypervisor = isNews ? hypervisors.get(name) : undefined;
  const message = suspicionText(suspicion.gone);
  if (hypervisor) events.event(hypervisor, { type: "Warning", reason: "SuspiciousSweep", message });
}
