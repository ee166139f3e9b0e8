import type { Find } from "./find.ts";
import type { Sighting } from "./memory.ts";

/** Once is a list that was read in the middle of a change. */
const sightingsLeast = 2;
/** However short the grace time is: a storage that is mounted again may take so long. */
const absenceLeastMs = 10 * 60_000;

export interface SightingsInput {
  /** By the names of Orphans. */
  readonly finds: ReadonlyMap<string, Find>;
  readonly before: ReadonlyMap<string, Sighting>;
  readonly nowMs: number;
  readonly graceMs: number;
}

export interface Sighted {
  readonly sightings: ReadonlyMap<string, Sighting>;
  /** The names of those that were seen often and long enough. */
  readonly due: readonly string[];
}

/**
 * Counts sightings, and says what has been there for long enough to be reported. What a declared
 * machine waits for was seen by that machine's own look already, and somebody waits. Pure.
 */
export function planSightings({ finds, before, nowMs, graceMs }: SightingsInput): Sighted {
  const sightings = new Map<string, Sighting>();
  const due: string[] = [];
  for (const [name, { blocks }] of finds) {
    const { firstMs, times } = before.get(name) ?? { firstMs: nowMs, times: 0 };
    const sighting = { firstMs, times: times + 1 };
    sightings.set(name, sighting);
    const isOld = sighting.times >= sightingsLeast && nowMs - firstMs >= graceMs;
    if (isOld || blocks.length > 0) due.push(name);
  }
  return { sightings, due };
}

/** Counts how often in a row, and since when, things were not seen. Pure. */
export function planAbsences(
  absent: readonly string[],
  before: ReadonlyMap<string, Sighting>,
  nowMs: number,
): Map<string, Sighting> {
  const counted = absent.map((name) => {
    const { firstMs, times } = before.get(name) ?? { firstMs: nowMs, times: 0 };
    return [name, { firstMs, times: times + 1 }] as const;
  });
  return new Map(counted);
}

/**
 * Whether something is gone, and not only out of sight: a word that a person said about it is not
 * forgotten before. After a restart this is counted anew, so it only becomes later. Pure.
 */
export function isLongAbsent(
  absence: Sighting | undefined,
  { nowMs, graceMs }: Pick<SightingsInput, "nowMs" | "graceMs">,
): boolean {
  if (absence === undefined || absence.times < sightingsLeast) return false;
  return nowMs - absence.firstMs >= Math.max(graceMs, absenceLeastMs);
}
