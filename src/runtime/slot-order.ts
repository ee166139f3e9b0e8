import { guard } from "../kernel/guard.ts";
import { priorities, type Priority } from "./work-queue.ts";

/** Somebody who waits for slots, all of them at once. */
export interface Waiting {
  readonly names: readonly string[];
  readonly priority: Priority;
  /** Grows with every arrival. */
  readonly arrival: number;
  /** How often somebody who came later got a slot of a name that this one wants. */
  readonly overtaken: number;
}

/**
 * How often one may be overtaken. Those who wait for a slow storage should not hold up the others
 * of their node; those who need two busy things at once must get them some day.
 */
const overtakenMax = 16;

/**
 * Who may go now, given how many slots of each name are free. Pure.
 *
 * Nobody ever holds some of its slots while it waits for others, so there is no deadlock. The order
 * is by priority and arrival; whoever was overtaken too often comes before all others, and free
 * slots that it needs are then kept for it. They are kept only for the first who waits at a name
 * that is exhausted: for the second they would only stand idle.
 */
export function whoMayGo<W extends Waiting>(
  waiting: Iterable<W>,
  freeSlots: (name: string) => number,
): W[] {
  // A thousand may wait for the same few names.
  const free = new Map<string, number>();
  const freeOf = (name: string): number => {
    const known = free.get(name) ?? freeSlots(name);
    free.set(name, known);
    return known;
  };
  const isFree = (name: string): boolean => guard("slot-free", freeOf(name) > 0);
  const take = (name: string): void => void free.set(name, freeOf(name) - 1);
  const awaited = new Set<string>();
  return [...waiting].toSorted(byTurn).filter((waiter) => {
    const missing = waiter.names.filter((name) => !isFree(name));
    const isNext = missing.every((name) => !awaited.has(name));
    const keeps = missing.length > 0 && isNext && isOverdue(waiter);
    for (const name of missing) awaited.add(name);
    if (missing.length > 0 && !keeps) return false;
    for (const name of waiter.names) if (!missing.includes(name)) take(name);
    return missing.length === 0;
  });
}

function byTurn(left: Waiting, right: Waiting): number {
  return rank(left) - rank(right) || left.arrival - right.arrival;
}

function rank(waiter: Waiting): number {
  return isOverdue(waiter) ? -1 : priorities.indexOf(waiter.priority);
}

function isOverdue(waiter: Waiting): boolean {
  return waiter.overtaken >= overtakenMax;
}
