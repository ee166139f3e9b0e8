import { StoreError, type Change } from "../../store/store.ts";
import { assert } from "../../kernel/assert.ts";
import { bucketOf, type ServerEnvironment } from "../contract.ts";
import type { Log } from "../log.ts";
import { Collector } from "./collector.ts";
import { EventExpiry } from "./event-expiry.ts";
import { Terminator } from "./terminator.ts";
import { WorkQueue } from "./work-queue.ts";

/** What the server does with objects when nobody asks: it runs from start to stop. */
export interface Lifecycle {
  /** Ends it; resolves when nothing of it is running any more. */
  stop(): Promise<void>;
  /** Resolves when there is nothing to do now. What waits for its time does not count. */
  settled(): Promise<void>;
}

/**
 * Starts garbage collection, the termination of namespaces and the expiry of Events. It holds no
 * state of its own: everything is derived from the store at the start and then from its changes, so
 * a crash at any point loses nothing.
 *
 * The start reads every object once, in one go: half a graph would lead to wrong decisions.
 */
export function startLifecycle(
  environment: ServerEnvironment,
  options: { readonly log?: Log } = {},
): Lifecycle {
  const { store, clock } = environment;
  const queue = new WorkQueue({
    clock,
    work: (key) => parts.work(key),
    failed: (key, error) => reportFailure(key, error, options.log),
  });
  const parts = new Parts(environment, (key) => queue.add(key));
  parts.scan();
  const watch = store.watch({
    afterRevision: store.revision(),
    deliver: (changes) => parts.deliver(changes),
  });
  assert(watch.ok, "the newest revision can always be watched from");
  return {
    settled: () => queue.idle(),
    stop: async () => {
      watch.stop();
      parts.stop();
      await queue.stop();
    },
  };
}

/** A namespace and an object could be called alike; the word in front tells their work apart. */
const prefix = { collect: "collect:", terminate: "terminate:", sweep: "sweep:" } as const;

/** The three parts, told of the same objects and changes. */
class Parts {
  readonly #environment: ServerEnvironment;
  readonly #collector: Collector;
  readonly #terminator: Terminator;
  readonly #events: EventExpiry;
  #generation = -1;

  constructor(environment: ServerEnvironment, look: (key: string) => void) {
    this.#environment = environment;
    this.#collector = new Collector(environment, (key) => look(prefix.collect + key));
    this.#terminator = new Terminator(environment, (name) => look(prefix.terminate + name));
    this.#events = new EventExpiry(environment, () => look(prefix.sweep));
  }

  scan(): void {
    const { store, catalogue } = this.#environment;
    this.#generation = catalogue.generation();
    for (const bucket of new Set(catalogue.all().map(bucketOf))) {
      const listed = store.list({ bucket });
      assert(listed.ok, "the newest revision can always be listed");
      for (const entry of listed.entries) {
        if (!isEvents(bucket)) this.#collector.observeEntry(bucket, entry);
        this.#terminator.observeEntry(bucket, entry);
        this.#events.observeEntry(bucket, entry);
      }
    }
  }

  deliver(changes: readonly Change[]): void {
    for (const change of changes) {
      if (!isEvents(change.bucket)) this.#collector.observe(change);
      this.#terminator.observe(change);
      this.#events.observe(change);
    }
    if (this.#environment.catalogue.generation() === this.#generation) return;
    // A kind that was unknown may be known now, and with it the owners of that kind.
    this.scan();
    this.#collector.reconsider();
  }

  work(key: string): Promise<void> {
    if (key.startsWith(prefix.collect)) {
      return this.#collector.collect(key.slice(prefix.collect.length));
    }
    if (key.startsWith(prefix.terminate)) {
      return this.#terminator.terminate(key.slice(prefix.terminate.length));
    }
    return this.#events.sweep();
  }

  stop(): void {
    this.#terminator.stop();
    this.#events.stop();
  }
}

/** Events have no owners worth following, and there are many of them. */
function isEvents(bucket: string): boolean {
  return bucket === bucketOf({ group: "", plural: "events" });
}

function reportFailure(key: string, error: unknown, log: Log | undefined): void {
  const isStoreRefusal = error instanceof StoreError;
  const subject = key.replaceAll("\n", " ");
  const message = error instanceof Error ? error.message : String(error);
  log?.(isStoreRefusal ? "warn" : "error", "lifecycle work will be tried again", {
    subject,
    error: message,
  });
  // A bug must not pass unnoticed where nobody reads a log.
  if (!isStoreRefusal && log === undefined) {
    queueMicrotask(() => {
      throw error;
    });
  }
}
