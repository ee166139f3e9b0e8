import type { Extent } from "./extent.ts";
import type { Find } from "./find.ts";

/** How often, and since when, something was seen. */
export interface Sighting {
  readonly firstMs: number;
  readonly times: number;
}

/** What is suddenly not there, since when, and how much is left. */
export interface Suspicion {
  readonly sinceMs: number;
  readonly gone: readonly string[];
  readonly extent: Extent;
}

/** What a process remembers of the sweeps of one hypervisor. All of it can be lost. */
export interface SweepMemory {
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
  extent?: Extent;
  suspicion?: Suspicion | undefined;
  /** Nothing is deleted by policy before. */
  quietUntilMs: number;
  /** Who waited for volumes to go when it was last swept: for news it is swept at once. */
  blocked?: string;
  /** The one that the policy lets go until the next sweep. */
  chosen?: string | undefined;
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
      quietUntilMs: 0,
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

  /** What is suddenly not there on a hypervisor, for its status. */
  suspicionOf(hypervisor: string): string | undefined {
    const gone = this.#memory.get(hypervisor)?.suspicion?.gone;
    return gone === undefined ? undefined : gone.join(", ");
  }
}
