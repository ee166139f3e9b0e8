import { assert } from "../kernel/assert.ts";
import type { Cancel, Clock } from "../kernel/clock.ts";
import { guard } from "../kernel/guard.ts";
import { whoMayGo, type Waiting } from "./slot-order.ts";
import { moreUrgent, type Priority } from "./work-queue.ts";

export interface SlotsOptions {
  readonly clock: Clock;
  /** How many may hold a name at once; 0 closes it. Asked anew each time. */
  readonly limitOf: (name: string) => number;
}

/** Slots that are held. Releasing is safe to repeat. */
export interface SlotLease {
  readonly holder: string;
  readonly names: readonly string[];
  release(): void;
}

export interface AcquireOptions {
  readonly priority?: Priority;
  /** Leaves the line. */
  readonly signal?: AbortSignal;
}

export interface TryOptions {
  readonly priority?: Priority;
  /** Called when it is its turn: run the key, and try again. */
  readonly wake: () => void;
}

/** Who holds a name and who waits for it. */
export interface SlotView {
  readonly name: string;
  readonly limit: number;
  readonly holders: readonly { readonly holder: string; readonly heldMs: number }[];
  readonly waiting: readonly {
    readonly holder: string;
    readonly priority: Priority;
    readonly waitedMs: number;
    /** All that it needs at once. */
    readonly names: readonly string[];
  }[];
}

/** Slots that were offered and not fetched go to the next: their key may be gone for good. */
const fetchWithinMs = 30_000;

/**
 * Limits on how much happens at once to a storage, a node, a VM, a hypervisor. Waiting for a slot
 * is no failure.
 *
 * A holder gets all its names or none, and has at most one lease and one place in line: whoever
 * holds something and waits for more is how deadlocks are made. Slots live in memory; after a
 * restart `assume` takes those of work that is still under way.
 */
export class Slots {
  readonly #options: SlotsOptions;
  readonly #held = new Map<string, Held>();
  /** How many leases have each name. */
  readonly #counts = new Map<string, number>();
  readonly #waiting = new Map<string, Waiter>();
  #arrivals = 0;

  constructor(options: SlotsOptions) {
    this.#options = options;
  }

  /** Waits for all the slots. The caller releases them on every path; `use` does it by itself. */
  async acquire(
    names: readonly string[],
    holder: string,
    { priority = "edit", signal }: AcquireOptions = {},
  ): Promise<SlotLease> {
    signal?.throwIfAborted();
    assert(!this.#held.has(holder), `${holder} holds no slots while it waits for some`);
    assert(!this.#waiting.has(holder), `${holder} waits for slots once`);
    const { promise, resolve, reject } = Promise.withResolvers<SlotLease>();
    const leave = (): void => {
      this.#waiting.delete(holder);
      reject(signal?.reason);
      this.#grant();
    };
    const settle = (): void => signal?.removeEventListener("abort", leave);
    signal?.addEventListener("abort", leave, { once: true });
    this.#line(names, holder, {
      priority,
      granted: (held) => {
        settle();
        resolve(held.lease);
      },
      refused: (error) => {
        settle();
        reject(error);
      },
    });
    return promise;
  }

  /** Holds the slots for as long as the body takes, however it ends. */
  async use<Result>(
    names: readonly string[],
    holder: string,
    body: () => Promise<Result>,
  ): Promise<Result> {
    const lease = await this.acquire(names, holder);
    try {
      return await body();
    } finally {
      lease.release();
    }
  }

  /**
   * For a reconcile that does not wait: the lease if it has it or can have it now, else a place in
   * line. When its turn comes the slots are kept for it for a while and its key is woken. To repeat
   * it is to ask how things stand; asking for other names means going to the end of the line.
   */
  tryAcquire(
    names: readonly string[],
    holder: string,
    { priority = "edit", wake }: TryOptions,
  ): SlotLease | "waiting" {
    const held = this.#held.get(holder);
    if (held !== undefined && sameNames(held.lease.names, names)) return fetchLease(held);
    assert(held === undefined || held.cancelOffer, `${holder} releases what it holds first`);
    const waiter = this.#waiting.get(holder);
    if (waiter !== undefined && sameNames(waiter.names, names)) {
      waiter.priority = moreUrgent(priority, waiter.priority);
      return "waiting";
    }
    this.leave(holder);
    const asking = { isNow: true };
    this.#line(names, holder, {
      priority,
      granted: (grant) => {
        if (asking.isNow) return;
        this.#offer(grant);
        wake();
      },
    });
    asking.isNow = false;
    return this.#held.get(holder)?.lease ?? "waiting";
  }

  /** Whether the holder has a place in line and nothing was offered to it yet. */
  isWaiting(holder: string): boolean {
    return this.#waiting.has(holder);
  }

  /** Takes the slots of work that is known to be under way, whatever the limits say. */
  assume(names: readonly string[], holder: string): SlotLease {
    const held = this.#held.get(holder);
    if (held !== undefined && sameNames(held.lease.names, names)) return fetchLease(held);
    this.leave(holder);
    return this.#hold(names, holder).lease;
  }

  /** Releases what the holder has and gives up its place: it needs nothing any more. */
  leave(holder: string): void {
    const waiter = this.#waiting.get(holder);
    this.#waiting.delete(holder);
    waiter?.refused?.(new Error(`${holder} left the line`));
    this.#held.get(holder)?.lease.release();
    if (waiter !== undefined) this.#grant();
  }

  /** Nothing is held and nobody waits, as after a start. */
  forgetAll(): void {
    for (const held of this.#held.values()) held.cancelOffer?.();
    this.#waiting.clear();
    this.#held.clear();
    this.#counts.clear();
  }

  /** To be called when limits changed. */
  refresh(): void {
    this.#grant();
  }

  /** Nobody waits any more, and no timer is left. What is held stays held. */
  stop(): void {
    const waiters = [...this.#waiting];
    this.#waiting.clear();
    for (const [holder, { refused }] of waiters) refused?.(new Error(`${holder} waits in vain`));
    for (const held of this.#held.values()) if (held.cancelOffer) held.lease.release();
  }

  /** Every name that is held or waited for. */
  view(): SlotView[] {
    const nowMs = this.#options.clock.monotonicMs();
    const leases = [...this.#held.values()];
    const waiters = [...this.#waiting.values()];
    const names = [...leases.map(({ lease }) => lease), ...waiters].flatMap((one) => one.names);
    return [...new Set(names)].toSorted().map((name) => ({
      name,
      limit: this.#options.limitOf(name),
      holders: leases
        .filter(({ lease }) => lease.names.includes(name))
        .map(({ lease, sinceMs }) => ({ holder: lease.holder, heldMs: nowMs - sinceMs })),
      waiting: waiters
        .filter((waiter) => waiter.names.includes(name))
        .map(({ holder, priority, sinceMs, names: all }) => {
          return { holder, priority, waitedMs: nowMs - sinceMs, names: all };
        }),
    }));
  }

  #line(
    names: readonly string[],
    holder: string,
    rest: Pick<Waiter, "priority" | "granted" | "refused">,
  ): void {
    this.#arrivals += 1;
    const sinceMs = this.#options.clock.monotonicMs();
    const arrival = this.#arrivals;
    const wanted = [...new Set(names)];
    this.#waiting.set(holder, { ...rest, holder, names: wanted, arrival, sinceMs, overtaken: 0 });
    this.#grant();
  }

  #grant(): void {
    const going = whoMayGo(this.#waiting.values(), (name) => this.#free(name));
    for (const waiter of going) {
      this.#waiting.delete(waiter.holder);
      for (const other of this.#waiting.values()) {
        const isEarlier = other.arrival < waiter.arrival;
        if (isEarlier && other.names.some((name) => waiter.names.includes(name))) {
          other.overtaken += 1;
        }
      }
    }
    // All are taken before anybody hears of it: what they do then finds everything in order.
    const grants = going.map((waiter) => ({
      waiter,
      held: this.#hold(waiter.names, waiter.holder),
    }));
    for (const { waiter, held } of grants) waiter.granted(held);
  }

  #hold(names: readonly string[], holder: string): Held {
    const held: Held = {
      sinceMs: this.#options.clock.monotonicMs(),
      lease: {
        holder,
        names: [...new Set(names)],
        release: () => {
          // A lease that was released before must not end a later one of the same holder.
          if (!guard("slot-release-own-lease", this.#held.get(holder) === held)) return;
          held.cancelOffer?.();
          this.#held.delete(holder);
          this.#count(held, -1);
          this.#grant();
        },
      },
    };
    this.#held.set(holder, held);
    this.#count(held, 1);
    return held;
  }

  #offer(held: Held): void {
    held.cancelOffer = this.#options.clock.after(fetchWithinMs, () => held.lease.release());
  }

  #count({ lease }: Held, more: 1 | -1): void {
    for (const name of lease.names) {
      const count = (this.#counts.get(name) ?? 0) + more;
      if (count > 0) this.#counts.set(name, count);
      else this.#counts.delete(name);
    }
  }

  #free(name: string): number {
    return this.#options.limitOf(name) - (this.#counts.get(name) ?? 0);
  }
}

interface Held {
  readonly lease: SlotLease;
  readonly sinceMs: number;
  /** Set while the slots are kept for a holder that has not come yet. */
  cancelOffer?: Cancel;
}

interface Waiter extends Waiting {
  readonly holder: string;
  readonly sinceMs: number;
  priority: Priority;
  overtaken: number;
  readonly granted: (held: Held) => void;
  readonly refused?: (error: Error) => void;
}

function fetchLease(held: Held): SlotLease {
  held.cancelOffer?.();
  delete held.cancelOffer;
  return held.lease;
}

function sameNames(left: readonly string[], right: readonly string[]): boolean {
  return new Set(left).size === new Set(right).size && right.every((name) => left.includes(name));
}
