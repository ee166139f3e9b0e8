import type { Failure, TaskHandle } from "../../hypervisor/index.ts";
import type { SlotLease } from "../../runtime/index.ts";
import type { Settlement } from "./settle.ts";
import { guard } from "../../kernel/guard.ts";

/** A task that is followed, on the monotonic clock of this process. */
export interface FollowedTask {
  readonly handle: TaskHandle;
  /** When it began; of one that was found, when its record was opened. */
  readonly sinceMs: number;
  /** It was under way already when it was found: how long it takes is not known. */
  readonly isFound: boolean;
  /** So long after that it was seen running. */
  runningMs?: number;
}

/** What a process remembers of one record. */
export interface Remembered {
  /** The record, by its id. */
  readonly id: string;
  task?: FollowedTask;
  /** How it ended, once that is known, and the task that told it. */
  settlement?: Settlement;
  endedTask?: TaskHandle | undefined;
  /** Its request is on its way, and takes long: nobody waits for it. */
  isSending?: boolean;
  /** Its request took long and ended without an answer: its window counts from then on. */
  isUnanswered?: boolean;
  /** The id was taken when it was sent: that may be by this very request, if it arrived twice. */
  doubt?: Failure;
  /** When that became known, on the monotonic clock. */
  endedMs?: number;
  lease?: SlotLease | undefined;
}

/**
 * What a process remembers of operations between turns, by who holds their slots. All of it can be
 * lost at any time: it saves calls, and the same is found out from the record and the hypervisor.
 */
export class OperationMemory {
  readonly #byHolder = new Map<string, Remembered>();
  /** The slots of operations that were open before this process began are taken. */
  areSlotsAssumed = false;

  /** Of this very record; another one's is of no use. */
  of(holder: string, id: string): Remembered {
    const known = this.#byHolder.get(holder);
    if (known !== undefined && guard("memory-of-this-record", known.id === id)) return known;
    known?.lease?.release();
    const fresh: Remembered = { id };
    this.#byHolder.set(holder, fresh);
    return fresh;
  }

  /** Keeps the slots that were taken for a record that is about to be written. */
  begin(holder: string, id: string, lease: SlotLease): Remembered {
    const known = this.#byHolder.get(holder);
    if (known?.lease !== lease) known?.lease?.release();
    const fresh: Remembered = { id, lease };
    this.#byHolder.set(holder, fresh);
    return fresh;
  }

  releaseSlots(holder: string): void {
    const known = this.#byHolder.get(holder);
    known?.lease?.release();
    if (known !== undefined) delete known.lease;
  }

  forget(holder: string): void {
    this.releaseSlots(holder);
    this.#byHolder.delete(holder);
  }

  forgetAll(): void {
    for (const holder of this.#byHolder.keys()) this.releaseSlots(holder);
    this.#byHolder.clear();
    this.areSlotsAssumed = false;
  }
}
