import { createHash } from "node:crypto";
import { hypervisorKind, sweepLimits } from "../../api/index.ts";
import type { Hypervisor, HypervisorStatus } from "../../api/index.ts";
import type { Client } from "../../client/index.ts";
import { formatMicroTime } from "../../kernel/clock.ts";
import { writeStatus } from "../../runtime/index.ts";
import type { WrittenObjects } from "../claims/index.ts";
import { defined } from "../failures/index.ts";
import type { Gone } from "./extent.ts";

type SweepStatus = NonNullable<HypervisorStatus["sweep"]>;

/** Since when something is so, by name. */
export type Times = ReadonlyMap<string, number>;

/** Much less was seen than before. */
export interface Suspicion {
  /** When it was last seen to become less. */
  readonly sinceMs: number;
  readonly gone: readonly Gone[];
}

/**
 * What a sweep has to know of those before: `status.sweep` of the Hypervisor. It is written before
 * anything follows from a sweep, so a process without memory neither counts anew nor forgets a
 * suspicion. It is empty, but for its beginning, while nothing is found, missing or suspicious.
 */
export interface SweepRecord {
  readonly sinceMs: number;
  readonly suspicion?: Suspicion | undefined;
  /** Things that are not reported yet, by shortened names of Orphans. */
  readonly sightings: Times;
  /** Kept things that were not seen, by shortened names of Orphans. */
  readonly absences: Times;
  /** Claims that are held for nothing, by shortened uids. */
  readonly emptyClaims: Times;
  /** How many finds are no Orphans because there are so many. */
  readonly unreported: number;
}

export interface RecordDeps {
  readonly client: Client;
  readonly hypervisors: Pick<WrittenObjects<Hypervisor>, "get" | "note">;
}

/** What is recorded of a hypervisor. Where nothing is, all of it begins now. */
export function recordOf(hypervisor: Hypervisor | undefined, nowMs: number): SweepRecord {
  const {
    since,
    suspicion,
    unreported = 0,
    ...times
  }: Partial<SweepStatus> = hypervisor?.status?.sweep ?? {};
  return {
    sinceMs: timeMs(since, nowMs),
    suspicion: suspicion && { sinceMs: timeMs(suspicion.since, nowMs), gone: suspicion.gone },
    sightings: timesOf(times.sightings, nowMs),
    absences: timesOf(times.absences, nowMs),
    emptyClaims: timesOf(times.emptyClaims, nowMs),
    unreported,
  };
}

/** A time that cannot be read, or is yet to come, is taken for now: what rests on it is later. */
function timeMs(text = "", nowMs = 0): number {
  const parsedMs = Date.parse(text);
  return Number.isNaN(parsedMs) ? nowMs : Math.min(parsedMs, nowMs);
}

function timesOf(groups: SweepStatus["sightings"] = [], nowMs: number): Times {
  return new Map(
    groups.flatMap(({ since, ids }) => ids.map((id) => [id, timeMs(since, nowMs)] as const)),
  );
}

/** Writes what has changed, over the version that was read: a stale copy changes nothing. */
export async function writeRecord(
  { client, hypervisors }: RecordDeps,
  name: string,
  record: SweepRecord,
): Promise<void> {
  const hypervisor = hypervisors.get(name);
  if (hypervisor === undefined) return;
  const status = { ...hypervisor.status, sweep: statusOf(record) };
  const objects = client.of(hypervisorKind);
  hypervisors.note(await writeStatus<Hypervisor>(objects, hypervisor, status));
}

function statusOf(record: SweepRecord): SweepStatus {
  const { sinceMs, suspicion, sightings, absences, emptyClaims, unreported } = record;
  return defined<SweepStatus>({
    since: formatMicroTime(sinceMs),
    suspicion: suspicion && {
      since: formatMicroTime(suspicion.sinceMs),
      gone: suspicion.gone.slice(0, sweepLimits.gone).map((one) => defined({ ...one })),
    },
    sightings: groupsOf(sightings),
    absences: groupsOf(absences),
    emptyClaims: groupsOf(emptyClaims),
    unreported: unreported === 0 ? undefined : unreported,
  });
}

/** The oldest first: those that do not fit begin when there is room for them. */
function groupsOf(times: Times): SweepStatus["sightings"] {
  if (times.size === 0) return undefined;
  const entries = [...times].toSorted(([a, aMs], [b, bMs]) => aMs - bMs || (a < b ? -1 : 1));
  const groups = new Map<number, string[]>();
  for (const [id, sinceMs] of entries.slice(0, sweepLimits.entries)) {
    groups.set(sinceMs, [...(groups.get(sinceMs) ?? []), id]);
  }
  return [...groups].slice(0, sweepLimits.groups).map(([sinceMs, ids]) => {
    return { since: formatMicroTime(sinceMs), ids };
  });
}

/** As it is recorded: hundreds of names have to fit into a status. */
function shortened(name: string): string {
  return createHash("sha256").update(name).digest("hex").slice(0, 16);
}

/** Those of the names that are recorded, with their times. */
export function recordedTimes(times: Times, names: Iterable<string>): Map<string, number> {
  const found = [...names].flatMap((name) => {
    const sinceMs = times.get(shortened(name));
    return sinceMs === undefined ? [] : [[name, sinceMs] as const];
  });
  return new Map(found);
}

export function shortenedTimes(times: Times): Times {
  return new Map([...times].map(([name, sinceMs]) => [shortened(name), sinceMs]));
}
