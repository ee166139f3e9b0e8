import type { Client, ObjectClient } from "../client/index.ts";
import { formatMicroTime, type Clock } from "../kernel/clock.ts";
import { guard } from "../kernel/guard.ts";
import { ApiError } from "../kernel/status.ts";
import {
  durationMsOf,
  holderOf,
  leaseKind,
  releasedSpec,
  renewedSpec,
  takenSpec,
  versionOf,
  type LeaseObject,
  type LeaseSpec,
  type LeaseWriter,
} from "./lease-object.ts";

export interface LeaseClaimOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly namespace: string;
  readonly name: string;
  /** Of this run of the program alone: what a record says of it, this run wrote. */
  readonly identity: string;
  readonly durationMs: number;
  readonly validMs: number;
  readonly graceMs: number;
  readonly whenAbsent: "wait" | "trust";
}

/**
 * One contender's knowledge of the Lease, and its single attempts to get or keep it.
 *
 * Why two can never believe in it at once:
 * - Every write but a creation names the version that it replaces, so of all that saw a record one
 *   succeeds, and a request that arrives late, by anybody, is refused.
 * - We believe in a write of ours that was answered, for `validMs` from when it was *sent*.
 * - Another may take it `durationMs` after it first *saw* that record, which was later. That is
 *   measured on its own monotonic clock; nobody reads the times in another's record.
 * - A write whose answer was lost is believed in by nobody until it was looked up and renewed.
 * A Lease that a person deletes or clears under its holder is why `safeAfterMs` is kept apart.
 */
export class LeaseClaim {
  readonly identity: string;
  readonly #options: LeaseClaimOptions;
  readonly #leases: ObjectClient<LeaseObject>;
  /** Our last write that was answered: when it was sent, on both clocks. */
  #sent: { readonly monotonicMs: number; readonly wallMs: number } | undefined;
  /** The Lease as it was after our last write; absent when anybody may have written since. */
  #current: LeaseObject | undefined;
  /** The last record that was seen, and when it was seen first. */
  #seen: { readonly lease: LeaseObject; readonly atMs: number } | undefined;
  #safeAfterMs: number | undefined;
  /** The uid of the Lease for which that holds; a Lease made after a deletion is another one. */
  #safeUid: string | undefined;
  #isOurs = false;

  constructor(options: LeaseClaimOptions) {
    this.#options = options;
    this.identity = options.identity;
    this.#leases = options.client.of(leaseKind);
  }

  /** Whether the last answered write still counts at this moment. */
  isHeld(nowMonotonicMs = this.#options.clock.monotonicMs()): boolean {
    return this.#remainingAt(nowMonotonicMs) > 0;
  }

  /** How long the lease is still ours, or undefined where it is not. */
  remainingMs(): number | undefined {
    const remainingMs = this.#remainingAt(this.#options.clock.monotonicMs());
    return remainingMs > 0 ? remainingMs : undefined;
  }

  /** Nothing may be written before this moment of the monotonic clock. */
  safeAfterMs(): number {
    return this.#safeAfterMs ?? Infinity;
  }

  holder(): string {
    return this.#seen === undefined ? "" : holderOf(this.#seen.lease);
  }

  /** Whether the server may hold us for the holder. */
  get mayBeOurs(): boolean {
    return this.#isOurs;
  }

  /** Looks, and gets or keeps the lease if that is possible now. Rejects where it is not known. */
  async attempt(timeoutMs: number, signal?: AbortSignal): Promise<void> {
    await this.#within(timeoutMs, signal, async (call) => {
      const wasHeld = this.isHeld();
      const lease = this.#current ?? (await this.#look(call));
      // Deleted under us: that is the end of this term, and the next begins like anybody's.
      if (lease === undefined) {
        return guard("lease-not-deleted", !wasHeld) ? this.#create(call) : undefined;
      }
      if (holderOf(lease) === this.identity) {
        this.#recognize(lease);
        return this.#renew(lease, call);
      }
      this.#end();
      if (guard("lease-free", this.#isFree(lease))) await this.#take(lease, call);
    });
  }

  /** Stops believing in it at once, then gives it back if it is ours. */
  async release(timeoutMs: number): Promise<void> {
    this.#end();
    await this.#within(timeoutMs, undefined, async (call) => {
      const lease = this.#current ?? (await this.#look(call));
      if (lease !== undefined && guard("lease-release-own", holderOf(lease) === this.identity)) {
        const waitMs = this.safeAfterMs() - this.#options.clock.monotonicMs();
        const spec = releasedSpec(lease.spec, { waitMs, now: this.#formattedNow() });
        this.#note(await this.#leases.update({ ...lease, spec }, { signal: call }));
      }
      this.#isOurs = false;
    });
  }

  /**
   * The wall clock is asked too, because the monotonic one stands still while a machine sleeps. If
   * it jumps ahead for another reason, the next renewal mends it.
   */
  #remainingAt(nowMonotonicMs: number): number {
    if (this.#sent === undefined) return 0;
    const { validMs, clock } = this.#options;
    const elapsedMs = Math.max(
      nowMonotonicMs - this.#sent.monotonicMs,
      clock.nowMs() - this.#sent.wallMs,
    );
    return validMs - elapsedMs;
  }

  #end(): void {
    this.#sent = undefined;
  }

  async #look(signal: AbortSignal): Promise<LeaseObject | undefined> {
    const { namespace, name } = this.#options;
    try {
      const lease = await this.#leases.get({ namespace, name }, { signal });
      this.#note(lease);
      return lease;
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 404) throw error;
      // Whoever creates it next has as good a right to it as we had.
      this.#end();
      return undefined;
    }
  }

  async #create(signal: AbortSignal): Promise<void> {
    const { namespace, name } = this.#options;
    this.#beSafeAfter(this.#absenceEndMs());
    const spec = takenSpec(undefined, this.#writer());
    const metadata = { namespace, name };
    const lease = { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata, spec };
    await this.#write(() => this.#leases.create(lease, { signal }));
    this.#safeUid = this.#current?.metadata.uid;
  }

  async #take(lease: LeaseObject, signal: AbortSignal): Promise<void> {
    this.#beSafeAfter(this.#endMs(lease) + this.#options.graceMs);
    this.#safeUid = lease.metadata.uid;
    await this.#put(lease, takenSpec(lease.spec, this.#writer()), signal);
  }

  /**
   * A creation names no version, so one whose answer was lost may take effect much later, after
   * another held the Lease and somebody deleted it. What counts is when we find it.
   */
  #recognize({ metadata }: LeaseObject): void {
    if (metadata.uid === this.#safeUid) return;
    this.#beSafeAfter(this.#absenceEndMs());
    this.#safeUid = metadata.uid;
  }

  async #renew(lease: LeaseObject, signal: AbortSignal): Promise<void> {
    await this.#put(lease, renewedSpec(lease.spec, this.#writer()), signal);
  }

  async #put(lease: LeaseObject, spec: LeaseSpec, signal: AbortSignal): Promise<void> {
    await this.#write(() => this.#leases.update({ ...lease, spec }, { signal }));
  }

  async #write(send: () => Promise<LeaseObject>): Promise<void> {
    const { clock } = this.#options;
    const sent = { monotonicMs: clock.monotonicMs(), wallMs: clock.nowMs() };
    this.#isOurs = true;
    const lease = await send();
    this.#note(lease);
    this.#current = lease;
    this.#sent = sent;
  }

  #isFree(lease: LeaseObject): boolean {
    return holderOf(lease) === "" || this.#options.clock.monotonicMs() >= this.#endMs(lease);
  }

  /** When its holder has stopped believing in it, by what we have seen. */
  #endMs(lease: LeaseObject): number {
    const { clock, durationMs } = this.#options;
    const seenMs = this.#seen?.atMs ?? clock.monotonicMs();
    const itsMs = durationMsOf(lease, durationMs);
    // A holder that was configured otherwise is given the longer time. One that let go has said so.
    return seenMs + (holderOf(lease) === "" ? itsMs : Math.max(itsMs, durationMs));
  }

  /** When a holder whose Lease was deleted by now has stopped believing in it. */
  #absenceEndMs(): number {
    const { clock, durationMs, graceMs, whenAbsent } = this.#options;
    const nowMs = clock.monotonicMs();
    return whenAbsent === "trust" ? nowMs : nowMs + durationMs + graceMs;
  }

  /** A lease that was lost and comes back by a late request still has all its history. */
  #beSafeAfter(timeMs: number): void {
    this.#safeAfterMs = Math.max(this.#safeAfterMs ?? -Infinity, timeMs);
  }

  #note(lease: LeaseObject): void {
    if (this.#seen !== undefined && versionOf(this.#seen.lease) === versionOf(lease)) return;
    this.#seen = { lease, atMs: this.#options.clock.monotonicMs() };
  }

  #writer(): LeaseWriter {
    const { identity, durationMs } = this.#options;
    return { identity, durationMs, now: this.#formattedNow() };
  }

  #formattedNow(): string {
    return formatMicroTime(this.#options.clock.nowMs());
  }

  /** An answer that does not come is not waited for: the lease runs out meanwhile. */
  async #within(
    timeoutMs: number,
    signal: AbortSignal | undefined,
    body: (signal: AbortSignal) => Promise<void>,
  ): Promise<void> {
    const call = new AbortController();
    const abort = (): void => call.abort(signal?.reason);
    const late = (): void => call.abort(new Error(`no answer within ${timeoutMs} ms`));
    const cancel = this.#options.clock.after(timeoutMs, late);
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
    try {
      await body(call.signal);
    } catch (error) {
      // Losing a race is an answer: somebody else wrote, and we look before the next try.
      this.#current = undefined;
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 404) this.#end();
      if (error.code !== 409) throw error;
    } finally {
      cancel();
      signal?.removeEventListener("abort", abort);
    }
  }
}
