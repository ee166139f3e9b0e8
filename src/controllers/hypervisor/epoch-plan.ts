import type { EpochView } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";

/** The epoch of this installation on one system, recorded before the system hears of it. */
export interface EpochRecord {
  readonly number: number;
  readonly run: string;
  readonly at: string;
  /** Where the run is that may act: another place only observes. */
  readonly place?: string;
  /** The last takeover that was carried out. Each is carried out once. */
  readonly takeover?: string;
}

/**
 * Why this installation only observes a system, kept for as long as nobody lets it take over: the
 * epoch that shows it may be deleted, and the process and the status may be lost.
 */
export interface ObservingRecord {
  /** The newest epoch ever seen there that this installation did not write. */
  readonly newest?: EpochView;
  /** Where it was started, other than in the recorded place. */
  readonly elsewhere?: string;
}

export interface EpochInput {
  readonly record: EpochRecord | undefined;
  readonly observing?: ObservingRecord | undefined;
  /** What the hypervisor shows. */
  readonly seen: EpochView | undefined;
  /** The number in the bulk list, which was read before. */
  readonly listed?: number | undefined;
  /** This run: one term of leadership of one process. */
  readonly run: string;
  /** Where this run is; absent: nobody can tell. */
  readonly place: string | undefined;
  /** Where the installation is, as far as people or its first start confirmed it. */
  readonly homes: readonly string[];
  /** What `berth takeover` wrote, if it ever did: a time, and the run that is to act. */
  readonly takeover: string | undefined;
}

export type EpochPlan =
  | { readonly do: "act"; readonly number: number }
  | {
      readonly do: "advance";
      readonly from: number | undefined;
      readonly number: number;
      readonly why: "Start" | "Missing" | "Takeover";
    }
  | { readonly do: "observe"; readonly why: "Superseded" | "PlaceChanged" }
  /** What is shown is no epoch of this installation. Nothing is concluded from it or kept of it. */
  | { readonly do: "refuse"; readonly seen: EpochView };

/**
 * Each start counts one. What is so far ahead of the record, no run wrote; and a takeover that
 * counted on from there would soon come to numbers that no hypervisor can show.
 */
const aheadMax = 1_000_000_000;

/** Whether this run may act on a hypervisor, and what it writes there first. Pure. */
export function planEpoch(input: EpochInput): EpochPlan {
  const { record, seen } = input;
  if (seen !== undefined && !guard("epoch-plausible", isPlausible(record, seen))) {
    return { do: "refuse", seen };
  }
  if (isTakeover(input)) return planTakeover(input);
  if (isElsewhere(input)) return { do: "observe", why: "PlaceChanged" };
  if (othersEpoch(input) !== undefined) return { do: "observe", why: "Superseded" };
  return planOwn(input);
}

function planOwn(input: EpochInput): EpochPlan {
  const { record, seen } = input;
  const recorded = record?.number ?? 0;
  // Only a run that was never superseded writes a missing epoch again.
  if (seen === undefined || seen.number < recorded) return planMissing(input);
  if (record?.run === input.run) return { do: "act", number: recorded };
  return { do: "advance", from: seen.number, number: recorded + 1, why: "Start" };
}

type Shown = Pick<EpochInput, "record" | "observing" | "seen" | "listed">;

/**
 * The newest epoch that was ever shown and that this installation did not write. A takeover records
 * a higher number, so what superseded this installation before does not count after it.
 */
export function othersEpoch({ record, observing, seen, listed }: Shown): EpochView | undefined {
  const inList = listed === undefined ? undefined : { number: listed };
  // The first of equal numbers is taken: the list does not show who wrote it.
  return [seen, observing?.newest, inList]
    .filter((epoch) => epoch !== undefined)
    .filter((epoch) => isPlausible(record, epoch))
    .filter((epoch) => isOthers(record, epoch))
    .toSorted((left, right) => right.number - left.number)[0];
}

/**
 * It names the run that a person saw observing. A backup that was made before that run carried it
 * out has the annotation too, and is started as another run: it was not asked for.
 */
function isTakeover({ record, takeover, run }: EpochInput): boolean {
  if (takeover === undefined) return false;
  const isOnce = guard("epoch-takeover-once", takeover !== record?.takeover);
  return isOnce && guard("takeover-of-this-run", takeover.endsWith(` ${run}`));
}

function planTakeover(input: EpochInput): EpochPlan {
  const { record, seen } = input;
  const numbers = [record, seen, othersEpoch(input)].map((epoch) => epoch?.number ?? 0);
  const number = Math.max(...numbers) + 1;
  return { do: "advance", from: seen?.number, number, why: "Takeover" };
}

/**
 * Where somebody edited the comment, the number is still the one that was recorded before. Without
 * a record this installation never wrote one: the backup is older than the epoch.
 */
function isOthers(record: EpochRecord | undefined, { number, run }: EpochView): boolean {
  const isNewest = guard("epoch-not-superseded", number <= (record?.number ?? 0));
  if (!isNewest || record === undefined) return !isNewest;
  const isRecorded = number < record.number || run === undefined || run === record.run;
  return !guard("epoch-of-recorded-run", isRecorded);
}

function isPlausible(record: EpochRecord | undefined, { number }: EpochView): boolean {
  return number - (record?.number ?? 0) <= aheadMax;
}

/** The hypervisor shows none, or an older one: what this run recorded never arrived, or is gone. */
function planMissing({ record, seen, run }: EpochInput): EpochPlan {
  const isOwn = record?.run === run;
  const number = (record?.number ?? 0) + (isOwn ? 0 : 1);
  const isExpected = record === undefined || seen !== undefined;
  return { do: "advance", from: seen?.number, number, why: isExpected ? "Start" : "Missing" };
}

function isElsewhere({ record, observing, place, homes }: EpochInput): boolean {
  // Nobody can tell where it is: then it is where it was found to be before.
  if (place === undefined) {
    return !guard("epoch-place-as-before", observing?.elsewhere === undefined);
  }
  if (record?.place !== undefined) return !guard("epoch-same-place", record.place === place);
  return !guard("epoch-at-home", homes.length === 0 || homes.includes(place));
}
