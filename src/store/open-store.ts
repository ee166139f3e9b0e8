import type { Clock } from "../kernel/clock.ts";
import { limits as kernelLimits } from "../kernel/limits.ts";
import type { HistoryLimits } from "./history.ts";
import type { Journal } from "./journal.ts";
import { Revisions } from "./revisions.ts";
import {
  type Decision,
  type Entry,
  type Key,
  type ListQuery,
  type ListResult,
  type Store,
  StoreError,
  type WatchOptions,
  type WatchResult,
  type WriteResult,
} from "./store.ts";
import { Turnstile } from "./turnstile.ts";
import { Watchers } from "./watchers.ts";
import { WriteQueue } from "./write-queue.ts";

/** Changes that one call to the journal forgets: it holds up writes no longer than a batch. */
const compactionChangesMax = 2_000;

export interface StoreLimits extends HistoryLimits {
  readonly pendingWrites: number;
}

export interface OpenStoreOptions {
  readonly journal: Journal;
  readonly clock: Clock;
  /** For tests. */
  readonly limits?: Partial<StoreLimits>;
  /**
   * Called once if it became unknown what is on the disk. From then on every write is refused;
   * the app stops, and the next start reads what is really there.
   */
  readonly onFailed?: (error: StoreError) => void;
}

/** Reads a journal and serves it. Rejects, with the journal closed, if it cannot be read. */
export async function openStore(options: OpenStoreOptions): Promise<Store> {
  const limits: StoreLimits = { ...kernelLimits, ...options.limits };
  const revisions = new Revisions(limits);
  try {
    revisions.replay(await options.journal.load(), options.clock.nowMs());
  } catch (error) {
    await options.journal.close();
    throw error;
  }
  return new JournaledStore({ ...options, limits }, revisions);
}

type State = "open" | "closed" | "failed";

class JournaledStore implements Store {
  readonly #options: OpenStoreOptions;
  readonly #revisions: Revisions;
  readonly #queue: WriteQueue;
  readonly #watchers = new Watchers();
  /** The journal takes one call at a time. */
  readonly #disk = new Turnstile();
  #state: State = "open";
  #closing: Promise<void> | undefined;

  constructor(options: OpenStoreOptions & { limits: StoreLimits }, revisions: Revisions) {
    this.#options = options;
    this.#revisions = revisions;
    this.#queue = new WriteQueue({
      revisions,
      pendingWritesMax: options.limits.pendingWrites,
      ready: () => void this.#disk.run(() => this.#commit()),
    });
  }

  revision(): number {
    return this.#revisions.revision;
  }

  compactedRevision(): number {
    return this.#revisions.compactedRevision;
  }

  get(key: Key): Entry | undefined {
    return this.#revisions.get(key);
  }

  list(query: ListQuery): ListResult {
    return this.#revisions.list(query);
  }

  count(bucket: string): number {
    return this.#revisions.count(bucket);
  }

  write(key: Key, decide: (current: Entry | undefined) => Decision): Promise<WriteResult> {
    return this.#queue.write(key, decide);
  }

  watch(options: WatchOptions): WatchResult {
    const past = this.#revisions.changesAfter(options.afterRevision, options.bucket);
    if (!past.ok) return past;
    const stop = this.#watchers.add(options, past.changes, this.#revisions.revision);
    if (this.#state === "closed") this.#watchers.close();
    return { ok: true, stop };
  }

  async compact(nowMs: number): Promise<void> {
    const forget = (): Promise<number> => this.#forget(this.#revisions.excess(nowMs));
    while ((await this.#disk.run(forget)) > 0);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    if (this.#state === "open") this.#queue.refuse(closedError());
    // Each turn lets one batch through, and what waited for it gets ready in the same moment.
    while (this.#queue.pendingWrites > 0) await this.#disk.run(async () => {});
    if (this.#state === "open") this.#state = "closed";
    this.#watchers.close();
    await this.#disk.run(() => this.#options.journal.close());
  }

  /** Makes the next batch durable, then visible, then known: to watchers first, then to writers. */
  async #commit(): Promise<void> {
    const batch = this.#queue.take();
    if (batch.length === 0) return;
    try {
      await this.#options.journal.append(batch);
    } catch (error) {
      return this.#refused(batch.length, error);
    }
    const nowMs = this.#options.clock.nowMs();
    this.#watchers.deliver(batch.map((record) => this.#revisions.apply(record, nowMs)));
    this.#queue.acknowledge(batch.length);
    if (this.#revisions.isOverfull()) void this.#disk.run(() => this.#forgetExcess());
  }

  #refused(count: number, error: unknown): void {
    if (isNothingStored(error)) this.#queue.fail(count, error);
    else this.#fail(count, error);
  }

  /** Between the calls of `compact`, so that a burst of writes does not fill the memory. */
  async #forgetExcess(): Promise<void> {
    try {
      await this.#forget(this.#revisions.excess());
    } catch (error) {
      // A disk that is full now has refused the writes too; the next one that succeeds tries again.
      if (!isStoreError(error)) throw error;
    }
  }

  /** Forgets at most so many of the oldest changes, and says how many. */
  async #forget(excess: number): Promise<number> {
    const step = this.#revisions.planCompaction(Math.min(excess, compactionChangesMax));
    if (!step || this.#state !== "open") return 0;
    try {
      await this.#options.journal.compact(step.compactedRevision, step.superseded);
    } catch (error) {
      if (isNothingStored(error)) throw error;
      throw this.#fail(0, error);
    }
    this.#revisions.applyCompaction(step);
    return step.changes;
  }

  /** Fail-stop: whoever does not know what is on the disk must not go on deciding. */
  #fail(count: number, cause: unknown): StoreError {
    this.#state = "failed";
    const unknown = new StoreError(
      "OutcomeUnknown",
      "the disk failed while writing: whether it was stored shows at the next start",
      { cause },
    );
    const refused = new StoreError(
      "StorageFailed",
      "the store takes no more writes since its disk failed; it must be opened again",
      { cause },
    );
    this.#queue.abandon(count, unknown, refused);
    this.#options.onFailed?.(unknown);
    return unknown;
  }
}

function isStoreError(error: unknown): error is StoreError {
  return error instanceof StoreError;
}

function isNothingStored(error: unknown): error is StoreError {
  if (!isStoreError(error)) return false;
  return error.code === "StorageFull" || error.code === "StorageFailed";
}

function closedError(): StoreError {
  return new StoreError("Closed", "the store is closed");
}
