/**
 * Of so many of the latest tasks of a kind it is remembered how long they took: enough for the next
 * one hardly ever to be much shorter than all of them.
 */
const recentMax = 32;
/** A little before the shortest of them was over. */
const early = 0.9;
/** What is noticed late by a twelfth of what it took anyway is not missed. */
const partOfAge = 12;
const waitMsLeast = 25;
const waitMsMost = 1_000;
/** Where nothing is known yet. */
const waitMsFirst = 100;

/**
 * When to look at a task again. Nobody calls when it is over, so what passes between its end and
 * the next look is lost to everyone who waits for it, and every look before is work for the
 * hypervisor that tells nothing. So the first look comes when tasks of this kind have begun to end
 * lately, and each further one after a twelfth of the task's age: a short task is noticed at once,
 * and a long one costs no more than one look in a second.
 */
export class TaskPace {
  /** By kind, how long each of the latest tasks took at least. */
  readonly #recentMs = new Map<string, readonly number[]>();

  /** How long to wait before looking at a task that has run for so long. */
  waitMs(kind: string, ranMs: number): number {
    const recentMs = this.#recentMs.get(kind);
    const waitMs =
      recentMs === undefined
        ? Math.max(ranMs, waitMsFirst)
        : Math.max(Math.min(...recentMs) * early - ranMs, ranMs / partOfAge, waitMsLeast);
    return Math.min(Math.ceil(waitMs), waitMsMost);
  }

  /**
   * A task of this kind was found to be over, so long after it began, and was seen running so long
   * after it. One that was over at the first look took nobody knows how long: half of it is tried.
   */
  ended(kind: string, { ranMs, runningMs = ranMs / 2 }: TaskRun): void {
    const recentMs = [...(this.#recentMs.get(kind) ?? []), runningMs];
    this.#recentMs.set(kind, recentMs.slice(-recentMax));
  }
}

export interface TaskRun {
  readonly ranMs: number;
  readonly runningMs?: number | undefined;
}
