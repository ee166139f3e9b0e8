import { limits } from "../../kernel/limits.ts";
import type { WireResponse, WireSink } from "../../kernel/wire.ts";
import { ApiError } from "../../kernel/status.ts";
import type { ResourceRequest, ServerEnvironment } from "../contract.ts";
import { tooLargeResourceVersion, tooManyRequests } from "./errors.ts";
import { parseWatchOptions, type WatchOptions } from "./list-options.ts";
import { negotiate } from "./negotiate.ts";
import { selectionOf } from "./selection.ts";
import { errorEvent, EventEncoder, RecentEvents } from "./watch-events.ts";
import { WatchStream, type WatchPlan } from "./watch-stream.ts";

/** The open watches of a server. */
export class Watches {
  readonly #environment: ServerEnvironment;
  readonly #open = new Set<WatchStream>();
  readonly #recent = new RecentEvents();
  #isClosed = false;

  constructor(environment: ServerEnvironment) {
    this.#environment = environment;
  }

  /** Answers at once; the first event, or the refusal of a revision, comes with the stream. */
  watch(request: ResourceRequest): WireResponse {
    const refusal = this.#refusal();
    if (refusal) throw refusal;
    const plan = this.#planOf(request);
    return {
      status: 200,
      headers: { "content-type": "application/json" },
      body: { start: (sink) => this.#start(plan, sink) },
    };
  }

  close(): void {
    this.#isClosed = true;
    for (const stream of this.#open) stream.end();
  }

  #refusal(): ApiError | undefined {
    if (this.#isClosed) {
      const details = { retryAfterSeconds: 1 };
      return new ApiError(503, "ServiceUnavailable", "the server is shutting down", details);
    }
    if (this.#open.size < limits.watchesMax) return undefined;
    return tooManyRequests(`${limits.watchesMax} watches are open already, please try again later`);
  }

  #planOf(request: ResourceRequest): WatchPlan {
    const { clock, random, store } = this.#environment;
    const { resource } = request;
    const options = parseWatchOptions(request.query);
    const isWatchList = options.sendInitialEvents === true && options.bookmarks;
    const { shape } = negotiate(request, isWatchList ? "watchlist" : "watch");
    const selection = selectionOf(request);
    const { resourceVersion = 0 } = options;
    if (options.sendInitialEvents && resourceVersion > store.revision()) {
      throw tooLargeResourceVersion(resourceVersion, store.revision());
    }
    const nowMs = (): number => clock.nowMs();
    const encoder = new EventEncoder({ resource, shape, nowMs, recent: this.#recent });
    return {
      resource,
      selection,
      options,
      encoder,
      timeoutMs: timeoutOf(options, random.number()),
    };
  }

  /** A client that went away before its turn was never counted, so nothing is left of it. */
  #start(plan: WatchPlan, sink: WireSink): () => void {
    const refusal = this.#refusal();
    if (refusal) {
      sink.write(errorEvent(refusal));
      sink.end();
      return () => {};
    }
    const { store, clock } = this.#environment;
    const ended = (): void => void this.#open.delete(stream);
    const stream: WatchStream = new WatchStream(plan, { store, clock, sink, ended });
    this.#open.add(stream);
    stream.start();
    return () => stream.release();
  }
}

/** Between half the longest time and all of it, so that watches do not all come again at once. */
function timeoutOf({ timeoutSeconds }: WatchOptions, random: number): number {
  const longest = limits.watchSecondsMax;
  const seconds = timeoutSeconds > 0 ? timeoutSeconds : (longest / 2) * (1 + random);
  return Math.min(seconds, longest) * 1000;
}
