import type { SweepTrouble } from "../hypervisor/index.ts";
import type { Extent } from "./extent.ts";
import type { Find } from "./find.ts";

/**
 * As many Orphans of one hypervisor may wait for a decision. More have one cause, and a person
 * finds it. What a declared machine waits for is told beyond that.
 */
export const orphansMax = 500;

/** How often, and since when, something was seen. */
export interface Sighting {
  readonly firstMs: number;
  readonly times: number;
}

/** What is suddenly not there, when that was last so, and how much is left. */
export interface Suspicion {
  readonly sinceMs: number;
  readonly gone: readonly string[];
  readonly extent: Extent;
}

/** How much was there in one kind of look, as far as it is believed. */
export interface Watch {
  readonly extent?: Extent | undefined;
  readonly suspicion?: Suspicion | undefined;
}

/**
 * What a process remembers of the sweeps of one hypervisor. All of it can be lost: then things are
 * reported, deleted and forgotten later, and never earlier.
 */
export interface SweepMemory {
  /** Since when this process looks: what was suspicious before, it does not know. */
  sinceMs?: number;
  /** Not before: another sweep. */
  nextAtMs: number;
  /** How many sweeps were begun, and which of them was the last whole one. */
  begun: number;
  swept?: number;
  /** What the last whole sweep found, by the names of Orphans. */
  finds: ReadonlyMap<string, Find>;
  sightings: ReadonlyMap<string, Sighting>;
  /** Since when Claims are held for nothing, by their uids. */
  emptySince: ReadonlyMap<string, number>;
  /** How often in a row, and since when, kept things were not found, by the names of Orphans. */
  absences: ReadonlyMap<string, Sighting>;
  /** What each tick lists, and what each sweep lists. */
  list: Watch;
  survey: Watch;
  /** How many finds are no Orphans because there are so many. */
  untold: number;
  /** Nothing is deleted by policy before. */
  quietUntilMs: number;
  /** Who waited for volumes to go when it was last swept: for news it is swept at once. */
  blocked?: string;
  /** The one that the policy lets go until the next sweep. */
  chosen?: string | undefined;
  /** When the policy last chose each that is still there. */
  tried: ReadonlyMap<string, number>;
}

/** Numbers about orphans, for monitoring. */
export interface OrphanFigures {
  suspicious(hypervisor: string, isSuspicious: boolean): void;
  reclaimed(hypervisor: string, bytes: number): void;
  forget(hypervisor: string): void;
}

/** The memory of all hypervisors, shared by the sweeps and by whoever acts on them. */
export class Sweeps {
  readonly #memory = new Map<string, SweepMemory>();
  /** Set by whoever runs the sweeps. */
  wake: (hypervisor: string) => void = () => undefined;

  of(hypervisor: string): SweepMemory {
    const known = this.#memory.get(hypervisor);
    if (known !== undefined) return known;
    const fresh: SweepMemory = {
      nextAtMs: 0,
      begun: 0,
      finds: new Map(),
      sightings: new Map(),
      emptySince: new Map(),
      absences: new Map(),
      list: {},
      survey: {},
      untold: 0,
      quietUntilMs: 0,
      tried: new Map(),
    };
    this.#memory.set(hypervisor, fresh);
    return fresh;
  }

  forget(hypervisor: string): void {
    this.#memory.delete(hypervisor);
  }

  /** Looks again at once: something was done, and what is there has to be listed anew. */
  hurry(hypervisor: string): void {
    this.of(hypervisor).nextAtMs = 0;
    this.wake(hypervisor);
  }

  /** What is wrong with the sweeps of a hypervisor, for its status. */
  troubleOf(hypervisor: string): SweepTrouble | undefined {
    const { list, survey, untold = 0 } = this.#memory.get(hypervisor) ?? {};
    const { gone } = list?.suspicion ?? survey?.suspicion ?? {};
    if (gone !== undefined) return { reason: "SuspiciousSweep", message: suspicionText(gone) };
    return untold === 0 ? undefined : { reason: "TooManyOrphans", message: untoldText(untold) };
  }
}

export function suspicionText(gone: readonly string[]): string {
  return `Suddenly not there any more: ${gone.join(", ")}. Nothing is concluded from that.`;
}

function untoldText(untold: number): string {
  return (
    `${orphansMax} Orphans wait for a decision, and ${untold} more things that nothing declares ` +
    "are not among them. Decide about some, or find what all have in common: berth orphans."
  );
}
