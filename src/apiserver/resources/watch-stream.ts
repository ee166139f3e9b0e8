import type { Cancel, Clock } from "../../kernel/clock.ts";
import { limits } from "../../kernel/limits.ts";
import { expired, type ApiError } from "../../kernel/status.ts";
import type { WireSink } from "../../kernel/wire.ts";
import type { Change, Store } from "../../store/store.ts";
import { bucketOf } from "../contract.ts";
import type { WatchOptions } from "./list-options.ts";
import { selectEntries } from "./select.ts";
import type { Selection } from "./selection.ts";
import { errorEvent, seenBy, type EventEncoder } from "./watch-events.ts";
import { itemOf } from "./write.ts";
import type { Resource } from "../../api/resource.ts";

export interface WatchPlan {
  readonly resource: Resource;
  readonly selection: Selection;
  readonly options: WatchOptions;
  readonly encoder: EventEncoder;
  readonly timeoutMs: number;
}

export interface WatchSurroundings {
  readonly store: Store;
  readonly clock: Clock;
  readonly sink: WireSink;
  /** Called once, however the watch ended. */
  readonly ended: () => void;
}

/**
 * One open watch, from its first event to its end. It ends when its time is up, its reader is gone
 * or too slow, the store closes or the server does; after that it holds nothing and writes nothing.
 */
export class WatchStream {
  readonly #plan: WatchPlan;
  readonly #around: WatchSurroundings;
  readonly #cancels: Cancel[] = [];
  #hasEnded = false;
  /** What a reader may be behind. It need not keep up with what was there before it came. */
  #bufferBytesMax = Infinity;

  constructor(plan: WatchPlan, around: WatchSurroundings) {
    this.#plan = plan;
    this.#around = around;
  }

  /** State and subscription are taken in one go, so that no change can fall between them. */
  start(): void {
    const { clock, sink } = this.#around;
    const afterRevision = this.#sendInitialEvents();
    this.#subscribe(afterRevision);
    if (this.#hasEnded) return;
    this.#bufferBytesMax = sink.bufferedBytes() + limits.watchBufferBytes;
    this.#cancels.push(clock.after(this.#plan.timeoutMs, () => this.#finish()));
    if (this.#plan.options.bookmarks) this.#scheduleBookmark();
  }

  /** Ends the watch from our side. */
  end(): void {
    if (this.#hasEnded) return;
    this.release();
    this.#around.sink.end();
  }

  /** Lets everything go without writing: the reader is gone. */
  release(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    for (const cancel of this.#cancels.splice(0)) cancel();
    this.#around.ended();
  }

  /** Returns the revision after which changes follow. */
  #sendInitialEvents(): number {
    const { options, resource, selection, encoder } = this.#plan;
    const { store } = this.#around;
    const { resourceVersion = 0, sendInitialEvents = resourceVersion === 0 } = options;
    if (!sendInitialEvents) return resourceVersion === 0 ? store.revision() : resourceVersion;
    const { entries, revision } = selectEntries(store, { resource, selection });
    for (const entry of entries) {
      this.#write(encoder.change({ type: "ADDED", item: itemOf(entry) }));
    }
    if (options.bookmarks && encoder.marksInitialEvents) {
      this.#bookmark({ endsInitialEvents: true });
    }
    return revision;
  }

  #subscribe(afterRevision: number): void {
    const { resource, selection } = this.#plan;
    const { store } = this.#around;
    const watching = store.watch({
      bucket: bucketOf(resource),
      prefix: selection.onlyId ?? selection.prefix,
      afterRevision,
      deliver: (changes) => this.#deliver(changes),
      closed: () => this.end(),
    });
    if (!watching.ok) return this.#refuse(this.#outOfReach(watching.why, afterRevision));
    // It may have ended while the past was delivered.
    if (this.#hasEnded) watching.stop();
    else this.#cancels.push(watching.stop);
  }

  #deliver(changes: readonly Change[]): void {
    const { selection, encoder } = this.#plan;
    for (const change of changes) {
      if (this.#hasEnded) return;
      const seen = seenBy(selection, change);
      if (seen) this.#write(encoder.change(seen));
    }
  }

  #write(event: Uint8Array): void {
    const { sink } = this.#around;
    sink.write(event);
    // Closed, it lists again when it can; buffered for, it would take everybody's memory.
    if (sink.bufferedBytes() > this.#bufferBytesMax) this.end();
  }

  #refuse(error: ApiError): void {
    this.#write(errorEvent(error));
    this.end();
  }

  /**
   * Kubernetes would wait for a revision that is still to come. Here only a client that knew the
   * server before its data was restored asks for one; it must list again, and 410 says so to all.
   */
  #outOfReach(why: "compacted" | "future", asked: number): ApiError {
    const { store } = this.#around;
    return why === "compacted"
      ? expired(`too old resource version: ${asked} (${store.compactedRevision()})`)
      : expired(`too large resource version: ${asked}, current: ${store.revision()}`);
  }

  #finish(): void {
    if (this.#plan.options.bookmarks) this.#bookmark({ endsInitialEvents: false });
    this.end();
  }

  /** Changes are delivered in the moment they become the newest, so nothing can be outstanding. */
  #bookmark(what: { endsInitialEvents: boolean }): void {
    this.#write(this.#plan.encoder.bookmark(this.#around.store.revision(), what));
  }

  #scheduleBookmark(): void {
    const cancel = this.#around.clock.after(limits.bookmarkEveryMs, () => {
      this.#cancels.splice(this.#cancels.indexOf(cancel), 1);
      this.#bookmark({ endsInitialEvents: false });
      if (!this.#hasEnded) this.#scheduleBookmark();
    });
    this.#cancels.push(cancel);
  }
}
