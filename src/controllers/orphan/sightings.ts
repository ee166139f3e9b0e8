import { guard } from "../../kernel/guard.ts";
import type { Find } from "./find.ts";
import type { Times } from "./record.ts";

/** However short the grace time is: a storage that is mounted again may take so long. */
const absenceLeastMs = 10 * 60_000;

/** Since when, and in how many sweeps at least, something was seen. */
export interface Sighting {
  readonly firstMs: number;
  readonly times: number;
}

export interface SightingsInput {
  /** By the names of Orphans. */
  readonly finds: ReadonlyMap<string, Find>;
  /** Since when every sweep has seen them. */
  readonly before: Times;
  readonly nowMs: number;
  readonly graceMs: number;
}

export interface Sighted {
  readonly sightings: ReadonlyMap<string, Sighting>;
  /** The names of those that were seen often and long enough. */
  readonly due: readonly string[];
}

/**
 * Counts sightings, and says what has been there for long enough to be reported. Once is a list
 * that was read in the middle of a change. What a declared machine waits for was seen by that
 * machine's own look already, and somebody waits. Pure.
 */
export function planSightings({ finds, before, nowMs, graceMs }: SightingsInput): Sighted {
  const sightings = new Map<string, Sighting>();
  const due: string[] = [];
  for (const [name, { blocks }] of finds) {
    const firstMs = before.get(name) ?? nowMs;
    sightings.set(name, { firstMs, times: before.has(name) ? 2 : 1 });
    const isOld =
      guard("orphan-seen-twice", before.has(name)) &&
      guard("orphan-seen-for-grace", nowMs - firstMs >= graceMs);
    if (isOld || blocks.length > 0) due.push(name);
  }
  return { sightings, due };
}

/** Since when things were in no sweep. Pure. */
export function planAbsences(
  absent: readonly string[],
  before: Times,
  nowMs: number,
): Map<string, number> {
  return new Map(absent.map((name) => [name, before.get(name) ?? nowMs]));
}

/**
 * Whether something is gone, and not only out of sight: a word that a person said about it is not
 * forgotten before. `sweptMs` is the time of the last sweep, not of the question: a process that
 * cannot sweep learns nothing while time passes. Pure.
 */
export function isLongAbsent(
  sinceMs: number | undefined,
  { sweptMs, graceMs }: { readonly sweptMs: number; readonly graceMs: number },
): boolean {
  if (sinceMs === undefined) return false;
  const isOld = sweptMs - sinceMs >= Math.max(graceMs, absenceLeastMs);
  return guard("kept-orphan-absent-for-grace", isOld);
}
