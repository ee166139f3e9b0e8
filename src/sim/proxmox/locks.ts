import type { Cancel, Clock } from "../../kernel/clock.ts";
import { PveError } from "./errors.ts";

export interface LockRequest {
  /** Which lock: a file of one node, or a name of the whole cluster. */
  readonly key: string;
  readonly isShared?: boolean;
  readonly timeoutMs: number;
  /** What the one who waited too long is told. */
  readonly timeoutText: string;
}

interface Waiter extends LockRequest {
  readonly owner: number;
  readonly onAnswer: (error?: Error) => void;
  cancel: Cancel;
}

interface Lock {
  /** How often each owner holds it. */
  readonly holders: Map<number, number>;
  isShared: boolean;
  readonly waiters: Waiter[];
}

/** flock(2) and the cluster's locks: they vanish with their owner, and waiting has an end. */
export class LockTable {
  readonly #clock: Clock;
  readonly #locks = new Map<string, Lock>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** True: got at once. False: the answer comes later, as a call without or with an error. */
  acquire(request: LockRequest & Pick<Waiter, "owner" | "onAnswer">): boolean {
    const lock = this.#lockOf(request.key);
    if (isGrantable(lock, request)) {
      grant(lock, request);
      return true;
    }
    const waiter: Waiter = { ...request, cancel: () => undefined };
    waiter.cancel = this.#clock.after(request.timeoutMs, () => {
      remove(lock.waiters, waiter);
      request.onAnswer(new PveError(request.timeoutText));
    });
    lock.waiters.push(waiter);
    return false;
  }

  release(owner: number, key: string): void {
    const lock = this.#locks.get(key);
    const held = lock?.holders.get(owner);
    if (lock === undefined || held === undefined) return;
    if (held > 1) lock.holders.set(owner, held - 1);
    else lock.holders.delete(owner);
    this.#serve(key, lock);
  }

  /** Whatever the process holds or waits for, now that it is gone. */
  releaseAll(owner: number): void {
    for (const [key, lock] of this.#locks) {
      for (const waiter of lock.waiters.filter((each) => each.owner === owner)) {
        waiter.cancel();
        remove(lock.waiters, waiter);
      }
      if (lock.holders.delete(owner)) this.#serve(key, lock);
    }
  }

  isHeld(key: string): boolean {
    return (this.#locks.get(key)?.holders.size ?? 0) > 0;
  }

  #lockOf(key: string): Lock {
    const known = this.#locks.get(key);
    if (known !== undefined) return known;
    const lock: Lock = { holders: new Map(), isShared: false, waiters: [] };
    this.#locks.set(key, lock);
    return lock;
  }

  #serve(key: string, lock: Lock): void {
    for (let next = lock.waiters[0]; next !== undefined; next = lock.waiters[0]) {
      if (!isGrantable(lock, next)) break;
      lock.waiters.shift();
      next.cancel();
      grant(lock, next);
      next.onAnswer();
    }
    if (lock.holders.size === 0 && lock.waiters.length === 0) this.#locks.delete(key);
  }
}

function isGrantable(lock: Lock, request: LockRequest & { owner: number }): boolean {
  if (lock.holders.size === 0) return true;
  if (lock.holders.size === 1 && lock.holders.has(request.owner)) return true;
  return lock.isShared && request.isShared === true;
}

function grant(lock: Lock, request: LockRequest & { owner: number }): void {
  lock.isShared = request.isShared ?? false;
  lock.holders.set(request.owner, (lock.holders.get(request.owner) ?? 0) + 1);
}

function remove(waiters: Waiter[], waiter: Waiter): void {
  const index = waiters.indexOf(waiter);
  if (index >= 0) waiters.splice(index, 1);
}
