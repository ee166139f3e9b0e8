import { guard } from "../../kernel/guard.ts";
import type { Gone } from "./extent.ts";
import type { Suspicion } from "./record.ts";

/** Looks that are so far apart and show the same are believed. */
const believeMs = 60_000;

/** What one look lacks. */
export interface Lack {
  /** What it lacks of what the objects of the API say is there. */
  readonly standing: readonly Gone[];
  /** What it lacks of what this process saw before. */
  readonly sudden: readonly Gone[];
  /** Each look tells of its own part: orphans are in surveys, all else in the list of a tick. */
  readonly of: "List" | "Survey";
  readonly nowMs: number;
  readonly graceMs: number;
}

/**
 * The suspicion after another look. It begins anew whenever something more is gone, and ends when
 * nothing is lacking and the grace time has passed, in which nothing is deleted by policy. What
 * goes on lacking stays recorded: a process without memory would take it for new. Pure.
 */
export function planSuspicion(before: Suspicion | undefined, lack: Lack): Suspicion | undefined {
  const { standing, sudden, of, nowMs } = lack;
  const old = before?.gone ?? [];
  const unjudged = old.filter((one) => isOfSurvey(one) !== (of === "Survey"));
  const gone = joined([...unjudged, ...standing, ...sudden]);
  const isMore = sudden.length > 0 || gone.some((one) => !isCovered(one, old));
  if (isMore) return { sinceMs: nowMs, gone };
  return before && suspicionAfter(before, gone, lack);
}

/** A suspicion where nothing more is gone. */
function suspicionAfter(
  before: Suspicion,
  gone: readonly Gone[],
  { nowMs, graceMs }: Lack,
): Suspicion | undefined {
  if (before.gone.some(isSurvey) && !gone.some(isSurvey)) {
    // Surveys show enough again, and may have shown too little until a moment ago.
    const sinceMs = Math.max(before.sinceMs, nowMs - believeMs);
    return { sinceMs, gone: before.gone.filter((one) => !isSurvey(one)) };
  }
  if (nowMs - before.sinceMs < graceMs) return before;
  return gone.length === 0 ? undefined : { ...before, gone };
}

/**
 * Whether what a look shows may be believed again. A survey is made all the same while the last one
 * showed too little: only another one can show more.
 */
export function isBelieved(
  { sinceMs, gone }: Suspicion,
  { nowMs, of }: Pick<Lack, "nowMs" | "of">,
): boolean {
  const isLong = nowMs - sinceMs >= believeMs;
  if (!guard("suspicion-believed-after-a-while", isLong)) return false;
  return of === "List" || !gone.some(isSurvey);
}

function isOfSurvey({ kind }: Gone): boolean {
  return kind === "Orphans" || kind === "Survey";
}

function isSurvey({ kind }: Gone): boolean {
  return kind === "Survey";
}

/** Whether as much of it was lacking before. */
export function isCovered({ kind, name, count = 1 }: Gone, by: readonly Gone[]): boolean {
  return by.some((one) => one.kind === kind && one.name === name && (one.count ?? 1) >= count);
}

/** Each thing once, with the most that is lacking of it, in an order that does not change. */
function joined(all: readonly Gone[]): Gone[] {
  const byName = new Map<string, Gone>();
  for (const one of all) {
    const key = `${one.kind} ${one.name ?? ""}`;
    const other = byName.get(key);
    if (other === undefined || (one.count ?? 1) > (other.count ?? 1)) byName.set(key, one);
  }
  return [...byName].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, one]) => one);
}
