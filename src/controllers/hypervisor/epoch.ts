import { annotations, failureReasons, hypervisorReasons } from "../../api/index.ts";
import type { Hypervisor } from "../../api/index.ts";
import type { Client } from "../../client/index.ts";
import type {
  Advanced,
  EpochView,
  Failure,
  Fence,
  HypervisorDriver,
  Inventory,
} from "../../hypervisor/index.ts";
import { formatTime, type Clock } from "../../kernel/clock.ts";
import type { EventRecorder } from "../../runtime/index.ts";
import { epochRetryMs } from "../operations/index.ts";
import {
  othersEpoch,
  planEpoch,
  type EpochInput,
  type EpochPlan,
  type EpochRecord,
  type ObservingRecord,
} from "./epoch-plan.ts";
import { readEpochRecords, writeEpochRecord, writeObserving } from "./epoch-records.ts";
import type { Trouble } from "./plan.ts";
import { guard } from "../../kernel/guard.ts";

/** Where a process is, so that a copy of its data somewhere else is told from it. */
export interface Place {
  /** Compared: another id is another place. */
  readonly id: string;
  /** For people: a host name. */
  readonly name: string;
}

/** The run that asks: one term of leadership of one process of an installation. */
export interface Run {
  readonly installation: string;
  readonly id: string;
  readonly place?: Place | undefined;
  /** Whether this run still leads. An epoch is compared and swapped, so it need not wait longer. */
  readonly fence: Fence;
}

export interface EpochDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly events: Pick<EventRecorder, "event">;
  readonly run: Run;
}

/** Whether this run acts on a hypervisor, or why it only observes. */
export type Standing =
  | { readonly is: "acting"; readonly number: number }
  | {
      readonly is: "observing";
      readonly trouble: Trouble;
      /** Who acts instead. */
      readonly other?: EpochView | undefined;
      /** This run, where a person can let it take over. */
      readonly run?: string;
      /**
       * When the epoch is written again, where it could not be, on the monotonic clock; absent:
       * when something changes.
       */
      readonly retryAtMs?: number;
      /** The same moment by the clock on the wall, for people. */
      readonly nextRetryMs?: number;
      /** How often in a row it could not be written. */
      readonly attempts: number;
    };

/** Why nothing is written, as VMs say it: they wait until this run may act. */
export function observeOnlyOf(standing: Standing | undefined): Failure | undefined {
  if (standing?.is !== "observing") return undefined;
  return { ...standing.trouble.failure, category: "DependencyNotReady" };
}

/** A standing, with what it was decided on: as long as that is the same, nobody is asked again. */
export interface SettledEpoch {
  readonly standing: Standing;
  readonly listed: number | undefined;
  readonly takeover: string | undefined;
}

export interface EpochLook {
  readonly driver: HypervisorDriver;
  readonly inventory: Inventory;
  readonly systemId: string;
  readonly old: SettledEpoch | undefined;
}

/**
 * Decides at each tick whether this run may act. The bulk list is enough while nothing changes; the
 * epoch is written at first contact, at the start of a run and at a takeover, never in between.
 */
export async function settleEpoch(
  hypervisor: Hypervisor,
  deps: EpochDeps,
  look: EpochLook,
): Promise<SettledEpoch> {
  const { old, inventory } = look;
  const takeover = hypervisor.metadata.annotations?.[annotations.takeoverAt];
  const listed = listedNumber(inventory, deps.run);
  if (old !== undefined && isStillTrue(old, { listed, takeover, inventory, deps })) return old;
  const standing = await decide(hypervisor, deps, { ...look, takeover });
  // What was just written is not in the list that was read before.
  const known = standing.is === "acting" ? standing.number : listed;
  return { standing, listed: known, takeover };
}

interface Now extends Pick<SettledEpoch, "listed" | "takeover"> {
  readonly inventory: Inventory;
  readonly deps: EpochDeps;
}

function isStillTrue(old: SettledEpoch, { listed, takeover, inventory, deps }: Now): boolean {
  const { standing } = old;
  if (takeover !== old.takeover) return false;
  if (standing.is === "observing" && standing.retryAtMs !== undefined) {
    return deps.clock.monotonicMs() < standing.retryAtMs;
  }
  const isSame = inventory.epochs === undefined || listed === old.listed;
  return guard("epoch-listed-unchanged", isSame);
}

function listedNumber({ epochs }: Inventory, { installation }: Run): number | undefined {
  return epochs?.find((epoch) => epoch.installation === installation)?.number;
}

/** Whether a list shows a newer epoch than the one under which this run acts. */
export function isNewer(old: SettledEpoch, inventory: Inventory, { run }: EpochDeps): boolean {
  return (listedNumber(inventory, run) ?? 0) > (old.listed ?? 0);
}

interface Deciding extends EpochLook {
  readonly takeover: string | undefined;
}

async function decide(
  hypervisor: Hypervisor,
  deps: EpochDeps,
  deciding: Deciding,
): Promise<Standing> {
  const { driver, takeover, old, inventory } = deciding;
  const { run, clock } = deps;
  const answer = await driver.epoch(run.installation);
  if (!answer.ok) return unwritten(hypervisor, answer.failure, { old, clock });
  const listed = listedNumber(inventory, run);
  // After the epoch: what this installation wrote was recorded before it could be seen.
  const known = await knownOf(deps, deciding);
  const place = run.place?.id;
  const input = { ...known, seen: answer.value, listed, run: run.id, place, takeover };
  const plan = planEpoch(input);
  switch (plan.do) {
    case "act":
      return { is: "acting", number: plan.number };
    case "refuse":
      return refused(hypervisor, plan.seen);
    case "observe":
      return observe(hypervisor, deps, { ...deciding, plan, input });
    case "advance":
      return advance(hypervisor, deps, { ...deciding, plan, record: known.record, input });
  }
}

/** What this installation keeps about a system. */
async function knownOf(
  { client }: EpochDeps,
  { systemId }: Deciding,
): Promise<Pick<EpochInput, "record" | "observing" | "homes">> {
  const { records, observing, home } = await readEpochRecords(client);
  const places = [home, ...Object.values(records).map(({ place }) => place)];
  const homes = places.filter((place) => place !== undefined);
  return { record: records[systemId], observing: observing[systemId], homes };
}

interface Observed extends Deciding {
  readonly plan: EpochPlan & { do: "observe" };
  readonly input: EpochInput;
}

/**
 * Why it only observes is written down before it goes on: the epoch that shows it may be deleted at
 * any time, and a run that does not know of it would act again.
 */
async function observe(
  hypervisor: Hypervisor,
  { client, run }: EpochDeps,
  { plan, input, systemId }: Observed,
): Promise<Standing> {
  const newest = othersEpoch(input);
  const elsewhere = plan.why === "PlaceChanged" ? input.place : undefined;
  const found: ObservingRecord = {
    ...(newest === undefined ? {} : { newest }),
    ...(elsewhere === undefined ? {} : { elsewhere }),
  };
  if (!isKept(found, input.observing)) await writeObserving(client, systemId, found);
  const { seen } = input;
  return observingAs(hypervisor, { ...plan, run: run.id, seen }, newest ?? seen);
}

/** Whether the installation has it written down already: at each tick nothing is written again. */
function isKept({ newest, elsewhere }: ObservingRecord, kept: ObservingRecord = {}): boolean {
  const isNewestKept = newest === undefined || isSameEpoch(newest, kept.newest);
  return isNewestKept && (elsewhere === undefined || elsewhere === kept.elsewhere);
}

function isSameEpoch(left: EpochView, right: EpochView | undefined): boolean {
  return left.number === right?.number && left.run === right.run;
}

interface Advancing extends Deciding {
  readonly plan: EpochPlan & { do: "advance" };
  readonly record: EpochRecord | undefined;
  readonly input: EpochInput;
}

/** The record first: after a crash the next run knows that the number may be this one's. */
async function advance(
  hypervisor: Hypervisor,
  deps: EpochDeps,
  advancing: Advancing,
): Promise<Standing> {
  const { systemId, driver, old } = advancing;
  const { run, client, clock } = deps;
  const next = recordOf(advancing, deps);
  await writeEpochRecord(client, systemId, next);
  const to = { number: next.number, run: run.id, at: next.at, place: run.place?.name ?? "" };
  const { installation, fence } = run;
  const change = { installation, from: advancing.plan.from, to };
  const sent = await driver.advance(change, fence);
  // To ask again settles a lost reply: it looks first, and the same run writes the same number.
  const advanced = sent.outcome === "unknown" ? await driver.advance(change, fence) : sent;
  if (advanced.outcome === "done") {
    report(hypervisor, deps, advancing);
    return { is: "acting", number: next.number };
  }
  // Somebody was faster, or the epoch is gone: the next tick reads it again.
  if (advanced.outcome === "changed") {
    const { seen } = advanced;
    const newest = othersEpoch({ record: next, seen });
    if (newest !== undefined) await writeObserving(client, systemId, { newest });
    const plan = { why: "Superseded", run: run.id, seen } as const;
    return { ...observingAs(hypervisor, plan, seen), ...retryIn(0, clock) };
  }
  return unwritten(hypervisor, failureOf(advanced), { old, clock });
}

function recordOf({ plan, record, takeover }: Advancing, { run, clock }: EpochDeps): EpochRecord {
  const { place } = run;
  const handled = plan.why === "Takeover" ? takeover : record?.takeover;
  // Where the place cannot be told, the one that was known stays.
  const known = place?.id ?? record?.place;
  return {
    number: plan.number,
    run: run.id,
    at: formatTime(clock.nowMs()),
    ...(known === undefined ? {} : { place: known }),
    ...(handled === undefined ? {} : { takeover: handled }),
  };
}

function report(hypervisor: Hypervisor, { events }: EpochDeps, { plan, input }: Advancing): void {
  if (plan.why === "Missing") {
    const message =
      "The epoch of this installation was missing on the hypervisor and was written again. " +
      "Somebody may have deleted it, or the token may have lost the right to see it.";
    events.event(hypervisor, { type: "Warning", reason: "EpochMissing", message });
  }
  if (plan.why === "Takeover") {
    const message = `This run took over from ${whoIs(othersEpoch(input) ?? input.seen)}.`;
    events.event(hypervisor, { type: "Normal", reason: "TakenOver", message });
  }
}

function failureOf(advanced: Exclude<Advanced, { outcome: "done" | "changed" }>): Failure {
  switch (advanced.outcome) {
    case "refused":
    case "unknown":
      return advanced.failure;
    case "blocked":
      return { category: "NodeUnhealthy", message: `it waits for ${advanced.waitsFor}` };
    case "fenced":
      return { category: "DependencyNotReady", message: "this process no longer leads" };
  }
}

/** Without its epoch a run writes nothing: it could not tell that it acts alone. */
function unwritten(
  { metadata }: Hypervisor,
  failure: Failure,
  { old, clock }: Pick<EpochLook, "old"> & Pick<EpochDeps, "clock">,
): Standing {
  const { category } = failure;
  const reason = failureReasons[category];
  const message =
    `The Hypervisor ${metadata.name ?? ""} is only observed, because the epoch of this ` +
    `installation could not be written: ${failure.message}`;
  const before = old?.standing.is === "observing" ? old.standing.attempts : 0;
  const attempts = before + 1;
  const trouble = { reason, failure: { ...failure, message } };
  const retry = retryIn(epochRetryMs(category, attempts), clock);
  return { is: "observing", trouble, ...retry, attempts };
}

function retryIn(
  waitMs: number,
  clock: Clock,
): Pick<Standing & { is: "observing" }, "retryAtMs" | "nextRetryMs"> {
  return { retryAtMs: clock.monotonicMs() + waitMs, nextRetryMs: clock.nowMs() + waitMs };
}

/** It ends when the list shows another number: no takeover would help. */
function refused({ metadata }: Hypervisor, { number, shownBy = "it" }: EpochView): Standing {
  const category = "ConflictingController";
  const failure: Failure = {
    category,
    message:
      `The Hypervisor ${metadata.name ?? ""} is only observed, because its epoch ${number} is so ` +
      "high that no run of this installation can have written it.",
    remedy: `Remove ${shownBy} on the hypervisor. Berth goes on by itself.`,
  };
  return { is: "observing", trouble: { reason: failureReasons[category], failure }, attempts: 0 };
}

function observingAs(
  hypervisor: Hypervisor,
  plan: Observing,
  other: EpochView | undefined,
): Standing & { is: "observing" } {
  const trouble = troubleOf(hypervisor, plan, other);
  return { is: "observing", trouble, other, run: plan.run, attempts: 0 };
}

interface Observing extends Pick<EpochPlan & { do: "observe" }, "why"> {
  readonly run: string;
  /** What the hypervisor shows now. */
  readonly seen: EpochView | undefined;
}

function troubleOf(
  { metadata }: Hypervisor,
  plan: Observing,
  other: EpochView | undefined,
): Trouble {
  const { name = "" } = metadata;
  return {
    reason: hypervisorReasons[plan.why],
    failure: {
      category: "ConflictingController",
      message: `The Hypervisor ${name} is only observed, because ${causeOf(plan, other)}.`,
      remedy:
        "If this installation is the one that is to act, make sure that the other one is stopped, " +
        `and run: berth takeover ${name}. If not, stop this one.`,
    },
  };
}

function causeOf({ why, seen }: Observing, other: EpochView | undefined): string {
  if (why === "PlaceChanged") {
    return "this installation was started in another place than before: its data was copied, restored or moved";
  }
  const acts = `another run of this installation acts on it: ${whoIs(other)}`;
  const isShown = other === undefined || seen?.number === other.number;
  return isShown
    ? acts
    : `${acts}. Its epoch is no longer there, which does not show that it ended`;
}

function whoIs(epoch: EpochView | undefined): string {
  if (epoch === undefined) return "a run that is not known";
  const { number, at, place } = epoch;
  const where = place === undefined || place === "" ? "" : ` on ${place}`;
  const when = at === undefined ? "" : `, started at ${at}`;
  return `the one with epoch ${number}${where}${when}`;
}
