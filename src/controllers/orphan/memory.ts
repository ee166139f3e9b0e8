import type { Extent } from "./extent.ts";
import type { Find } from "./find.ts";
import type { Times } from "./record.ts";
import type { Sighting } from "./sightings.ts";

/**
 * As many Orphans of one hypervisor may wait for a decision. More have one cause, and a person
 * finds it. As many more are reported of what a declared machine waits for.
 */
export const orphansMax = 500;

/**
 * What a process remembers of the sweeps of one hypervisor. All of it can be lost before any turn:
 * that only costs further sweeps. What sweeps have to know of each other is in their record.
 */
export interface SweepMemory {
  /** Not before: another sweep. */
  nextAtMs: number;
  /** Not before: another sweep that somebody asked for. */
  askedNotBeforeMs: number;
  /** How many sweeps were begun, which of them was the last whole one, and when that was. */
  begun: number;
  swept?: number;
  sweptMs: number;
  /** What the last whole sweep found, by the names of Orphans. */
  finds: ReadonlyMap<string, Find>;
  sightings: ReadonlyMap<string, Sighting>;
  /** Since when kept things were not found, by the names of Orphans. */
  absences: Times;
  /** What each tick lists, and what each sweep lists: with what the next is compared. */
  list?: Extent;
  survey?: Extent;
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
  readonly #running = new Map<string, Promise<boolean>>();
  /** Set by whoever runs the sweeps. */
  wake: (hypervisor: string) => void = () => undefined;

  of(hypervisor: string): SweepMemory {
    const known = this.#memory.get(hypervisor);
    if (known !== undefined) return known;
    const fresh: SweepMemory = {
      nextAtMs: 0,
      askedNotBeforeMs: 0,
      begun: 0,
      sweptMs: 0,
      finds: new Map(),
      sightings: new Map(),
      absences: new Map(),
    };
    this.#memory.set(hypervisor, fresh);
    return fresh;
  }

  /** One sweep of a hypervisor at a time: who asks for another shares the one that runs. */
  share(hypervisor: string, sweep: () => Promise<boolean>): Promise<boolean> {
    const running = this.#running.get(hypervisor);
    if (running !== undefined) return running;
    const mine = sweep().finally(() => this.#running.delete(hypervisor));
    this.#running.set(hypervisor, mine);
    return mine;
  }

  forget(hypervisor: string): void {
    this.#memory.delete(hypervisor);
  }

  forgetAll(): void {
    this.#memory.clear();
  }

  /**
   * Sweeps again soon: something was done, and what is there has to be listed anew. Each sweep
   * wakes whoever asked for it, so the pause between two of them is kept here.
   */
  hurry(hypervisor: string): void {
    const memory = this.of(hypervisor);
    memory.nextAtMs = Math.min(memory.nextAtMs, memory.askedNotBeforeMs);
    this.wake(hypervisor);
  }
}
