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

/** A namespace and an object could be called alike; the word before the colon tells them apart. */
const prefixes = { collect: "collect:", terminate: "terminate:", sweep: "sweep:" } as const;

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
  const { store, catalogue, clock } = environment;
  const queue = new WorkQueue({
    clock,
    work: (key) => work(key),
    failed: (key, error) => reportFailure(key, error, options.log),
  });
  const collector = new Collector(environment, (key) => queue.add(prefixes.collect + key));
  const terminator = new Terminator(environment, (name) => queue.add(prefixes.terminate + name));
  const events = new EventExpiry(environment, () => queue.add(prefixes.sweep));
  let generation = -1;

  function work(key: string): Promise<void> {
    if (key.startsWith(prefixes.collect)) {
      return collector.collect(key.slice(prefixes.collect.length));
    }
    if (key.startsWith(prefixes.terminate)) {
      return terminator.terminate(key.slice(prefixes.terminate.length));
    }
    return events.sweep();
  }

  function scan(): void {
    generation = catalogue.generation();
    for (const bucket of new Set(catalogue.all().map(bucketOf))) {
      const listed = store.list({ bucket });
      assert(listed.ok, "the newest revision can always be listed");
      for (const entry of listed.entries) {
        if (!isEvents(bucket)) collector.observeEntry(bucket, entry);
        terminator.observeEntry(bucket, entry);
        events.observeEntry(bucket, entry);
      }
    }
  }

  function deliver(changes: readonly Change[]): void {
    for (const change of changes) {
      if (!isEvents(change.bucket)) collector.observe(change);
      terminator.observe(change);
      events.observe(change);
    }
    if (catalogue.generation() === generation) return;
    // A kind that was unknown may be known now, and with it the owners of that kind.
    scan();
    collector.reconsider();
  }

  scan();
  const watch = store.watch({ afterRevision: store.revision(), deliver });
  assert(watch.ok, "the newest revision can always be watched from");

  return {
    settled: () => queue.idle(),
    stop: async () => {
      watch.stop();
      terminator.stop();
      events.stop();
      await queue.stop();
    },
  };
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
