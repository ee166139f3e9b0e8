import type { Client, ObjectClient } from "../client/index.ts";
import { assert } from "../kernel/assert.ts";
import { sleep, type Clock } from "../kernel/clock.ts";
import type { KubeObject } from "../kernel/object.ts";
import type { Random } from "../kernel/random.ts";
import { ApiError } from "../kernel/status.ts";
import {
  eventKind,
  eventNameOf,
  eventOf,
  referenceTo,
  timesOf,
  type EventObject,
  type EventType,
  type ObjectReference,
  type Occurrence,
} from "./event-object.ts";
import { RecentMap } from "./recent-map.ts";
import { TokenBucket } from "./token-bucket.ts";

export interface EventRecorderOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  /** Which program reports, as a qualified name: "berth.dev/vm-controller". */
  readonly component: string;
  /** Which instance of it. */
  readonly instance: string;
  /** Told of every Event that was given up, and why. */
  readonly onDropped?: (why: string, error?: unknown) => void;
}

export interface EventDetails {
  readonly type: EventType;
  /** One CamelCase word, of a small set. */
  readonly reason: string;
  /** A sentence for people. It is cut off after 1 KiB. */
  readonly message: string;
}

/**
 * Tells people what happened to an object. Events are hints: they may be dropped, and nothing may
 * rest on them.
 *
 * It never waits and never throws. Whoever may read Events of a namespace reads what is said here:
 * that no secret gets into a message is the caller's responsibility.
 */
export interface EventRecorder {
  event(object: KubeObject, details: EventDetails): void;
  /** Takes no more, and resolves when what was taken is written or given up. Safe to repeat. */
  stop(): Promise<void>;
}

/** Per object: a burst, then one every five minutes. As every Kubernetes component does. */
const eventRate = { burst: 25, refillMs: 5 * 60_000 };
/** Objects whose rate, and occurrences whose count, are remembered. */
const rememberedMax = 4096;
/** Events that wait to be written. A server that is away so long has other worries. */
const pendingMax = 1000;
/** Each try is repeatable: a name is created once, and counts are absolute. */
const triesMax = 3;
const retryMs = 2_000;

export function createEventRecorder(options: EventRecorderOptions): EventRecorder {
  const scribe = new Scribe(options);
  return {
    event: (object, details) => {
      try {
        scribe.take(object, details);
      } catch (error) {
        options.onDropped?.("not an Event", error);
      }
    },
    stop: () => scribe.stop(),
  };
}

class Scribe {
  readonly #options: EventRecorderOptions;
  readonly #events: ObjectClient<EventObject>;
  readonly #buckets = new RecentMap<TokenBucket>(rememberedMax);
  readonly #occurrences = new RecentMap<Occurrence>(rememberedMax);
  /** Those to be written, each once: what happens again meanwhile only raises its count. */
  readonly #pending = new Set<Occurrence>();
  /** Those whose Event may exist. */
  readonly #written = new WeakSet<Occurrence>();
  readonly #stopping = new AbortController();
  #writing: Promise<void> | undefined;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#events = options.client.of(eventKind);
  }

  take(object: KubeObject, details: EventDetails): void {
    const { clock, onDropped } = this.#options;
    const reference = referenceTo(object);
    assert(reference.name !== "", "an Event is about an object with a name");
    if (this.#stopping.signal.aborted) return onDropped?.("stopped");
    const bucket = this.#buckets.of(objectId(reference), () => {
      return new TokenBucket(eventRate, clock.monotonicMs());
    });
    if (!bucket.take(clock.monotonicMs())) return onDropped?.("too many of this object");
    const occurrence = this.#occurrences.of(occurrenceId(reference, details), () => {
      return this.#newOccurrence(reference, details);
    });
    if (!this.#pending.has(occurrence) && this.#pending.size >= pendingMax) {
      return onDropped?.("too many waiting to be written");
    }
    occurrence.count += 1;
    occurrence.lastMs = clock.nowMs();
    this.#pending.add(occurrence);
    this.#writing ??= this.#writeAll();
  }

  async stop(): Promise<void> {
    this.#stopping.abort(new Error("the recorder was stopped"));
    await this.#writing;
  }

  #newOccurrence(object: ObjectReference, details: EventDetails): Occurrence {
    const { clock, random } = this.#options;
    const nowMs = clock.nowMs();
    const { type, reason, message } = details;
    const suffix = Buffer.from(random.bytes(8)).toString("hex");
    return { object, type, reason, message, suffix, firstMs: nowMs, lastMs: nowMs, count: 0 };
  }

  async #writeAll(): Promise<void> {
    for (let [next] = this.#pending; next !== undefined; [next] = this.#pending) {
      this.#pending.delete(next);
      await this.#write(next);
    }
    this.#writing = undefined;
  }

  async #write(occurrence: Occurrence): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#send(occurrence);
      } catch (error) {
        const isLast = tries >= triesMax || this.#stopping.signal.aborted || isRefusal(error);
        if (isLast) return this.#options.onDropped?.("not written", error);
        await this.#pause();
      }
    }
  }

  async #send(occurrence: Occurrence): Promise<void> {
    if (this.#written.has(occurrence) && (await this.#raise(occurrence))) return;
    const { component, instance } = this.#options;
    // Also before the answer: where it is lost, the next try finds out.
    this.#written.add(occurrence);
    await this.#events.create(eventOf(occurrence, { component, instance }));
  }

  /** Raises the count of an Event; false if there is none any more. */
  async #raise(occurrence: Occurrence): Promise<boolean> {
    try {
      await this.#events.patch(eventNameOf(occurrence), { merge: timesOf(occurrence) });
      return true;
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return false;
      throw error;
    }
  }

  async #pause(): Promise<void> {
    const { signal } = this.#stopping;
    try {
      await sleep(this.#options.clock, retryMs, signal);
    } catch (reason) {
      // Stopped while waiting: one last try without a pause.
      if (!signal.aborted) throw reason;
    }
  }
}

/** Whether it would be refused again: 4xx, but for "too many requests" and "timeout". */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof ApiError)) return false;
  return error.code < 500 && error.code !== 429 && error.code !== 408;
}

function objectId({ apiVersion, kind, namespace = "", name, uid = "" }: ObjectReference): string {
  return [apiVersion, kind, namespace, name, uid].join("\n");
}

function occurrenceId(object: ObjectReference, { type, reason, message }: EventDetails): string {
  return [objectId(object), type, reason, message].join("\n");
}
