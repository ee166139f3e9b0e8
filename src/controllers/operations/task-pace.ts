import type { Clock } from "../../kernel/clock.ts";
import { ageMs, type OperationRecord } from "./record.ts";

/**
 * Of so many of the latest tasks of a kind it is remembered how long they took: enough for the next
 * one hardly ever to be much shorter or longer than all of them.
 */
const recentMax = 32;
/** What is noticed late by a twelfth of what it took anyway is not missed. */
const partOfAge = 12;
/** Within the time in which the others ended, so many looks are enough. */
const partOfRange = 12;
/** Where they all took about as long, nothing is gained by looking more often than this. */
const partOfAgeLeast = 24;
/** Where nothing is known yet: it is not known for long, so a few looks more do no harm. */
const partOfAgeFirst = 8;
const waitMsLeast = 25;
const waitMsMost = 1_000;

/**
 * When to look at a task again. Nobody calls when it is over, so what passes between its end and
 * the next look is lost to everyone who waits for it, and every look before is work for the
 * hypervisor that tells nothing. So the first look comes when tasks of this kind have begun to end
 * lately. Each further one comes after a twelfth of the task's age, or of the time between the
 * shortest and the longest of them, whichever is less: a short task is noticed at once, and a long
 * one costs no more than one look in a second.
 */
export class TaskPace {
  /** By kind, the latest tasks. */
  readonly #recent = new Map<string, readonly Span[]>();

  forgetAll(): void {
    this.#recent.clear();
  }

  /** How long to wait before looking at a task that has run for so long. */
  waitMs(kind: string, ranMs: number): number {
    const recent = this.#recent.get(kind);
    const waitMs = recent === undefined ? ranMs / partOfAgeFirst : learnedMs(recent, ranMs);
    return Math.min(Math.ceil(Math.max(waitMs, waitMsLeast)), waitMsMost);
  }

  /**
   * A task of this kind was found to be over, so long after it began, and was seen running so long
   * after it. One that was over at the first look took nobody knows how long: half of it is tried.
   */
  ended(kind: string, { ranMs, runningMs = ranMs / 2 }: TaskRun): void {
    const recent = [...(this.#recent.get(kind) ?? []), { leastMs: runningMs, mostMs: ranMs }];
    this.#recent.set(kind, recent.slice(-recentMax));
  }
}

export interface TaskRun {
  readonly ranMs: number;
  readonly runningMs?: number | undefined;
}

/** How long a task took: longer than the one, and at most the other. */
interface Span {
  readonly leastMs: number;
  readonly mostMs: number;
}

function learnedMs(recent: readonly Span[], ranMs: number): number {
  const firstMs = Math.min(...recent.map(({ leastMs }) => leastMs)) * earlyOf(recent.length);
  const lastMs = Math.max(...recent.map(({ mostMs }) => mostMs));
  const ofAgeMs = ranMs / partOfAge;
  const ofRangeMs = ranMs < lastMs ? (lastMs - firstMs) / partOfRange : ofAgeMs;
  const nextMs = Math.min(ofAgeMs, Math.max(ofRangeMs, ranMs / partOfAgeLeast));
  return Math.max(firstMs - ranMs, nextMs);
}

/** A little before the shortest was over: the fewer they are, the shorter may the next be. */
function earlyOf(count: number): number {
  return (0.95 * count) / (count + 1);
}

/** While nobody knows the outcome, each look comes after this part of the operation's age. */
const unconfirmedShare = 0.25;
const unconfirmedMsLeast = 1_000;
/** The first pause of a late attempt. */
const unconfirmedMsFirst = 8_000;

/**
 * When to look again for the effect of an operation whose outcome is not known. Each look asks
 * about all of a VM. An effect that is to be seen is mostly seen within seconds; what was lost
 * before is likely lost again. So the looks follow the age of the operation, and later attempts
 * begin with longer pauses: by the record alone, so that a process without memory asks no more
 * often.
 */
export function unconfirmedMs(record: OperationRecord, leftMs: number, clock: Clock): number {
  const firstMs = Math.min(unconfirmedMsLeast * 2 ** (record.attempt - 1), unconfirmedMsFirst);
  const pauseMs = Math.max(ageMs(record, clock) * unconfirmedShare, firstMs);
  return Math.min(pauseMs, Math.max(leftMs, unconfirmedMsLeast));
}
