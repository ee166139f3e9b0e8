import { Violation } from "./violation.ts";

/** What is left of a history when everything that was declared is gone. */
export interface Remains {
  /** Living objects of each kind, by bucket. */
  readonly objects: ReadonlyMap<string, number>;
  /** Records on the store's disk, after all that may be forgotten was. */
  readonly records: number;
  /** Objects that were ever declared. */
  readonly declared: number;
  /** Ids for which a machine was ever asked for. */
  readonly ids: number;
  /**
   * Machines and files on the clusters, volumes that were ever there (an Orphan that tells of one
   * is kept for a while when it has gone), and ids under which people did something.
   */
  readonly things: number;
  /** How often a program of Berth's was started. */
  readonly starts: number;
}

/** Of one object a program tells in a burst, and then once in five minutes. */
const eventsEach = 30;

/**
 * Law "bounds": the disk holds one record for each living object, and what Berth writes for itself
 * is bounded by what was declared and not by how often something went wrong.
 */
export function demandBounds({ objects, records, declared, ids, things, starts }: Remains): void {
  const living = [...objects.values()].reduce((sum, count) => sum + count, 0);
  demandAtMost("records on the disk", records, living);
  const of = (bucket: string): number => objects.get(bucket) ?? 0;
  // An id that somebody took or left something under is not used, and rests.
  demandAtMost("Claims", of("berth.dev/claims"), ids + things + declared);
  demandAtMost("Orphans", of("berth.dev/orphans"), ids + things);
  // The two Hypervisors and their images tell, too.
  demandAtMost("Events", of("core/events"), (declared + 4) * eventsEach * starts);
}

function demandAtMost(what: string, count: number, most: number): void {
  if (count > most) throw new Violation("bounds", `${count} ${what} are left, and ${most} may be`);
}
