import type { Cancel } from "../../kernel/clock.ts";
import { isJsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { Change, Entry } from "../../store/store.ts";
import { bucketOf, type ServerEnvironment } from "../contract.ts";
import { decode, remove } from "../objects/index.ts";

/** kube-apiserver's default `--event-ttl`. */
const eventTtlMs = 60 * 60_000;
/** How often old Events are looked for. Nobody minds a minute more of an hour. */
const sweepEveryMs = 60_000;
/** Events removed in one sweep; the rest is left to the next, so that others can write too. */
const removedPerSweep = 1_000;

const eventsBucket = bucketOf({ group: "", plural: "events" });

/** Forgets Events an hour after they were last seen to happen. */
export class EventExpiry {
  readonly #environment: ServerEnvironment;
  readonly #sweepDue: () => void;
  /** When each Event was last seen to happen. The oldest are not necessarily first. */
  readonly #lastSeenMs = new Map<string, number>();
  #cancel: Cancel | undefined;
  #isStopped = false;

  /** `sweepDue` is called when it is time for the next `sweep`. */
  constructor(environment: ServerEnvironment, sweepDue: () => void) {
    this.#environment = environment;
    this.#sweepDue = sweepDue;
  }

  observeEntry(bucket: string, entry: Entry): void {
    if (bucket !== eventsBucket) return;
    this.#lastSeenMs.set(entry.id, this.#lastSeenOf(entry));
    this.#schedule();
  }

  observe(change: Change): void {
    if (change.bucket !== eventsBucket) return;
    if (change.type === "delete") this.#lastSeenMs.delete(change.entry.id);
    else this.observeEntry(change.bucket, change.entry);
  }

  async sweep(): Promise<void> {
    const { clock } = this.#environment;
    const bornBeforeMs = clock.nowMs() - eventTtlMs;
    const expired = [...this.#lastSeenMs]
      .filter(([, seenMs]) => seenMs <= bornBeforeMs)
      .slice(0, removedPerSweep);
    await Promise.all(expired.map(([id]) => this.#removeIfOld(id, bornBeforeMs)));
    this.#schedule();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel?.();
    this.#cancel = undefined;
  }

  async #removeIfOld(id: string, bornBeforeMs: number): Promise<void> {
    await this.#environment.store.write({ bucket: eventsBucket, id }, (current) => {
      // It may have happened again in the meantime.
      const isOld = current !== undefined && this.#lastSeenOf(current) <= bornBeforeMs;
      return isOld ? remove(decode(current)) : { do: "keep" };
    });
  }

  #lastSeenOf(entry: Entry): number {
    return lastSeenMs(decode(entry)) ?? this.#lastSeenMs.get(entry.id) ?? this.#nowMs();
  }

  #nowMs(): number {
    return this.#environment.clock.nowMs();
  }

  #schedule(): void {
    if (this.#isStopped || this.#cancel !== undefined || this.#lastSeenMs.size === 0) return;
    this.#cancel = this.#environment.clock.after(sweepEveryMs, () => {
      this.#cancel = undefined;
      this.#sweepDue();
    });
  }
}

/** The newest of an Event's many times; undefined if none of them can be read. */
function lastSeenMs(event: KubeObject): number | undefined {
  const series = isJsonObject(event["series"]) ? event["series"] : {};
  const times = [
    series["lastObservedTime"],
    event["lastTimestamp"],
    event["eventTime"],
    event["firstTimestamp"],
    event.metadata.creationTimestamp,
  ];
  const known = times
    .map((time) => (typeof time === "string" ? Date.parse(time) : NaN))
    .filter((timeMs) => !Number.isNaN(timeMs));
  return known.length === 0 ? undefined : Math.max(...known);
}
