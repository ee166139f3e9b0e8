import { sleep, type Clock } from "../kernel/clock.ts";
import type { KubeObject, WatchEvent } from "../kernel/object.ts";
import type { Random } from "../kernel/random.ts";
import type { Client, ObjectClient, SelectOptions } from "./client.ts";
import { isExpired } from "./errors.ts";
import { InformerCache, versionOf, type CacheChange, type Indexes } from "./informer-cache.ts";
import type { Kind } from "./kind.ts";

export interface InformerOptions<Read extends KubeObject, Written> {
  readonly client: Client;
  readonly kind: Kind<Read, Written>;
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly indexes?: Indexes<Read>;
  readonly clock: Clock;
  readonly random: Random;
  /** Told of every failure that is survived: the server is away, refuses, or is behind. */
  readonly onError?: (error: unknown) => void;
}

/** What to call when an object changed. They must neither wait nor throw. */
export interface InformerHandler<Read> {
  readonly added?: (object: Read) => void;
  readonly updated?: (object: Read, old: Read) => void;
  /** With the last state that was seen, which may not be the last there was. */
  readonly deleted?: (old: Read) => void;
}

/**
 * A copy of all objects of a kind that follows the server: list, then watch, for ever. Its objects
 * are shared and frozen, and for one key they only get newer.
 */
export interface Informer<Read> {
  /** By `namespace/name`, or the bare name. */
  get(key: string): Read | undefined;
  list(): Read[];
  byIndex(index: string, value: string): Read[];
  /** Resolves when the first list is in; rejects if the informer is stopped before. */
  readonly synced: Promise<void>;
  isSynced(): boolean;
  /** Begins with an `added` for everything that is there. Returns what ends it. */
  on(handler: InformerHandler<Read>): () => void;
  /** Resolves when nothing of it is running any more. */
  stop(): Promise<void>;
}

const backoffFirstMs = 800;
const backoffMostMs = 30_000;
/** A watch that held so long was a good one: the next failure starts from the shortest wait. */
const goodWatchMs = 60_000;
/** A watch that the server ends sooner, without a word, counts as a failure. */
const shortWatchMs = 1_000;
/** Asked of the server, and doubled at random, so that not all come back at once. */
const watchSeconds = 300;
/** Bookmarks come every minute. After three without a sign the connection is taken for dead. */
const silenceMostMs = 180_000;

export function createInformer<Read extends KubeObject, Written>(
  options: InformerOptions<Read, Written>,
): Informer<Read> {
  const follower = new Follower(options);
  const running = follower.run();
  return {
    get: (key) => follower.cache.get(key),
    list: () => follower.cache.list(),
    byIndex: (index, value) => follower.cache.find(index, value),
    synced: follower.synced.promise,
    isSynced: () => follower.isSynced,
    on: (handler) => follower.on(handler),
    stop: () => {
      follower.stop();
      return running;
    },
  };
}

class Follower<Read extends KubeObject, Written> {
  readonly cache: InformerCache<Read>;
  readonly synced = Promise.withResolvers<void>();
  isSynced = false;
  readonly #options: InformerOptions<Read, Written>;
  readonly #objects: ObjectClient<Read, Written>;
  readonly #handlers = new Set<InformerHandler<Read>>();
  readonly #stopping = new AbortController();
  /** Where the next watch begins; undefined: list first. */
  #position: string | undefined;
  /** The newest revision that was ever seen here. */
  #newest = 0n;
  #failures = 0;

  constructor(options: InformerOptions<Read, Written>) {
    this.#options = options;
    this.#objects = options.client.of(options.kind);
    this.cache = new InformerCache(options.indexes);
    // Whoever does not wait for the first list need not hear that it never came.
    this.synced.promise.catch(() => undefined);
  }

  stop(): void {
    this.#stopping.abort(new Error("the informer was stopped"));
  }

  on(handler: InformerHandler<Read>): () => void {
    this.#handlers.add(handler);
    for (const object of this.cache.list()) tell(handler, { type: "added", object });
    return () => void this.#handlers.delete(handler);
  }

  async run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#round();
      } catch (error) {
        if (signal.aborted) break;
        await this.#recover(error);
      }
    }
    this.synced.reject(signal.reason);
    this.#handlers.clear();
  }

  async #round(): Promise<void> {
    if (this.#position === undefined) await this.#list();
    const { clock } = this.#options;
    const startMs = clock.monotonicMs();
    let count = 0;
    try {
      count = await this.#watch();
    } finally {
      if (clock.monotonicMs() - startMs >= goodWatchMs) this.#failures = 0;
    }
    if (count > 0 || clock.monotonicMs() - startMs >= shortWatchMs) return;
    throw new Error("the server ended the watch at once");
  }

  async #list(): Promise<void> {
    const list = await this.#objects.list(this.#selection());
    const version = versionOf(list);
    if (version < this.#newest) {
      const place = `${list.metadata.resourceVersion} after ${this.#newest}`;
      throw new Error(`the server is behind what was already seen (${place})`);
    }
    this.#newest = version;
    this.#position = list.metadata.resourceVersion ?? "0";
    this.#announce(this.cache.replace(list.items));
    this.isSynced = true;
    this.synced.resolve();
  }

  /** Follows one watch to its end, and says how many events came. */
  async #watch(): Promise<number> {
    const ending = new AbortController();
    const stop = (): void => ending.abort(this.#stopping.signal.reason);
    this.#stopping.signal.addEventListener("abort", stop, { once: true });
    // It may have been stopped while it listed: then no event comes any more.
    if (this.#stopping.signal.aborted) stop();
    const silence = this.#watchSilence(ending);
    let count = 0;
    try {
      for await (const event of this.#objects.watch(this.#watchOptions(ending.signal))) {
        silence.restart();
        this.#failures = 0;
        count++;
        this.#take(event);
      }
      return count;
    } finally {
      silence.end();
      this.#stopping.signal.removeEventListener("abort", stop);
    }
  }

  #take({ type, object }: WatchEvent<Read>): void {
    const version = versionOf(object);
    if (type === "ADDED" || type === "MODIFIED") this.#announce(this.cache.set(object));
    else if (type === "DELETED") this.#announce(this.cache.delete(object));
    if (version <= this.#newest) return;
    this.#newest = version;
    this.#position = object.metadata.resourceVersion;
  }

  async #recover(error: unknown): Promise<void> {
    this.#options.onError?.(error);
    const isFirstExpiry = isExpired(error) && this.#failures === 0;
    if (isExpired(error)) this.#position = undefined;
    this.#failures++;
    // What expired is listed anew at once, unless that does not help.
    if (isFirstExpiry) return;
    const { clock, random } = this.#options;
    const fullMs = Math.min(backoffMostMs, backoffFirstMs * 2 ** Math.min(this.#failures - 1, 10));
    try {
      await sleep(clock, fullMs * (0.5 + random.number() / 2), this.#stopping.signal);
    } catch (reason) {
      // Stopped while waiting; anything else would be a bug of the clock.
      if (!this.#stopping.signal.aborted) throw reason;
    }
  }

  #watchSilence(ending: AbortController): { restart: () => void; end: () => void } {
    const { clock } = this.#options;
    const start = (): (() => void) =>
      clock.after(silenceMostMs, () => ending.abort(new Error("the watch fell silent")));
    let cancel = start();
    return {
      restart: () => {
        cancel();
        cancel = start();
      },
      end: () => cancel(),
    };
  }

  #selection(): SelectOptions {
    const { namespace, labelSelector, fieldSelector } = this.#options;
    return {
      ...(namespace === undefined ? {} : { namespace }),
      ...(labelSelector === undefined ? {} : { labelSelector }),
      ...(fieldSelector === undefined ? {} : { fieldSelector }),
      signal: this.#stopping.signal,
    };
  }

  #watchOptions(signal: AbortSignal): Parameters<ObjectClient<Read, Written>["watch"]>[0] {
    return {
      ...this.#selection(),
      ...(this.#position === undefined ? {} : { resourceVersion: this.#position }),
      allowWatchBookmarks: true,
      timeoutSeconds: Math.floor(watchSeconds * (1 + this.#options.random.number())),
      signal,
    };
  }

  #announce(changes: readonly CacheChange<Read>[]): void {
    for (const change of changes) {
      // A handler that is added meanwhile has been told of what is there already.
      for (const handler of this.#handlers.values().toArray()) tell(handler, change);
    }
  }
}

/** A handler that throws is a bug of its owner: loud, and no reason to stop following. */
function tell<Read>(handler: InformerHandler<Read>, change: CacheChange<Read>): void {
  try {
    if (change.type === "added") handler.added?.(change.object);
    else if (change.type === "updated") handler.updated?.(change.object, change.old);
    else handler.deleted?.(change.old);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
