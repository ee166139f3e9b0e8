import { setImmediate } from "node:timers/promises";
import { ApiError, expired, type Status } from "../kernel/status.ts";
import { objectKey, type KubeObject } from "../kernel/object.ts";
import type { Random } from "../kernel/random.ts";
import type { WireRequest, WireResponse, WireSink } from "../kernel/wire.ts";
import type { Kind } from "./kind.ts";
import { NetworkError } from "./errors.ts";
import type { Transport } from "./transport.ts";

/** What the tests of this room share: a kind, and a server that can be broken in every way. */

export type Widget = {
  apiVersion: string;
  kind: string;
  metadata: KubeObject["metadata"];
  size?: number;
};

export const widgetKind: Kind<Widget> = {
  group: "berth.dev",
  version: "v1",
  kind: "Widget",
  plural: "widgets",
  namespaced: true,
};

export const steadyRandom: Random = {
  number: () => 0.5,
  bytes: (count) => new Uint8Array(count),
  uuid: () => "00000000-0000-4000-8000-000000000000",
};

/** Lets everything happen that can happen without time passing. */
export async function flush(): Promise<void> {
  for (let i = 0; i < 5; i++) await setImmediate();
}

export function jsonResponse(status: number, body: unknown): WireResponse {
  const bytes = new TextEncoder().encode(JSON.stringify(body));
  return { status, headers: { "content-type": "application/json" }, body: bytes };
}

/** `away` takes no connection, `hangs` never answers, `refuses` says 503, `tears` sends half. */
export type Mood = "well" | "away" | "hangs" | "refuses" | "tears";

interface LoggedChange {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly revision: number;
  readonly object: Widget;
}

/** Widgets over the wire: list, paging and watch, and nothing else. */
export class FakeServer {
  mood: Mood = "well";
  pageItems = Infinity;
  /** "GET /path?query" of every request, in order. */
  readonly requests: string[] = [];
  #revision = 0;
  #compacted = 0;
  #objects = new Map<string, Widget>();
  readonly #log: LoggedChange[] = [];
  readonly #watches = new Set<WireSink>();

  readonly transport: Transport = async (request) => {
    this.requests.push(`${request.method} ${request.url}`);
    if (this.mood === "away") throw new NetworkError("Unreachable", "connection refused");
    if (this.mood === "hangs") return new Promise<never>(() => undefined);
    try {
      return this.#torn(this.#answer(request));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return jsonResponse(error.code, error.toStatus());
    }
  };

  names(): string[] {
    return [...this.#objects.values()].map(({ metadata }) => metadata.name ?? "");
  }

  get watches(): number {
    return this.#watches.size;
  }

  put(name: string, fields: { uid?: string; size?: number } = {}): void {
    const { uid = name, size } = fields;
    const metadata = { namespace: "default", name, uid, resourceVersion: String(++this.#revision) };
    const object: Widget = {
      apiVersion: "berth.dev/v1",
      kind: "Widget",
      metadata,
      ...(size === undefined ? {} : { size }),
    };
    const type = this.#objects.has(objectKey(metadata)) ? "MODIFIED" : "ADDED";
    this.#objects.set(objectKey(metadata), object);
    this.#publish({ type, revision: this.#revision, object });
  }

  remove(name: string): void {
    const key = `default/${name}`;
    const old = this.#objects.get(key);
    if (old === undefined) throw new Error(`${name} is there`);
    this.#objects.delete(key);
    const revision = ++this.#revision;
    const object = { ...old, metadata: { ...old.metadata, resourceVersion: String(revision) } };
    this.#publish({ type: "DELETED", revision, object });
  }

  /** Something else in the store moves on. */
  skip(revisions: number): void {
    this.#revision += revisions;
  }

  bookmark(): void {
    const metadata = { resourceVersion: String(this.#revision) };
    this.#tell({
      type: "BOOKMARK",
      object: { kind: "Widget", apiVersion: "berth.dev/v1", metadata },
    });
  }

  sendRaw(content: string | Uint8Array): void {
    const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
    for (const sink of this.#watches) sink.write(bytes);
  }

  fail(status: Status): void {
    this.#tell({ type: "ERROR", object: status });
  }

  /** Everything up to now can no longer be watched from. */
  compact(): void {
    this.#compacted = this.#revision;
  }

  endWatches(): void {
    for (const sink of this.#watches) sink.end();
    this.#watches.clear();
  }

  /** The store is put back to an earlier state, as from a backup. */
  goBack(revision: number): void {
    this.#revision = revision;
    this.#objects = new Map();
  }

  #answer(request: WireRequest): WireResponse {
    if (this.mood === "refuses") {
      throw new ApiError(503, "ServiceUnavailable", "the server is not ready");
    }
    const query = new URL(request.url, "http://fake").searchParams;
    return query.get("watch") === "true" ? this.#watch(query) : this.#list(query);
  }

  #list(query: URLSearchParams): WireResponse {
    const start = Number(query.get("continue") ?? 0);
    if (query.has("continue") && this.#compacted > 0)
      throw expired("the continue token is too old");
    const limit = query.has("limit") ? this.pageItems : Infinity;
    const all = [...this.#objects.values()];
    const items = all.slice(start, start + limit);
    const more =
      start + items.length < all.length ? { continue: String(start + items.length) } : {};
    const metadata = { resourceVersion: String(this.#revision), ...more };
    return jsonResponse(200, { kind: "WidgetList", apiVersion: "berth.dev/v1", metadata, items });
  }

  #watch(query: URLSearchParams): WireResponse {
    const from = Number(query.get("resourceVersion"));
    if (from < this.#compacted) throw expired(`too old resource version: ${from}`);
    const start = (sink: WireSink): (() => void) => {
      for (const change of this.#log) if (change.revision > from) sink.write(line(change));
      this.#watches.add(sink);
      return () => void this.#watches.delete(sink);
    };
    return { status: 200, headers: {}, body: { start } };
  }

  #torn(response: WireResponse): WireResponse {
    if (this.mood !== "tears" || !(response.body instanceof Uint8Array)) return response;
    return { ...response, body: response.body.subarray(0, response.body.byteLength / 2) };
  }

  #publish(change: LoggedChange): void {
    this.#log.push(change);
    this.#tell(change);
  }

  #tell(event: { type: string; object: unknown }): void {
    for (const sink of this.#watches) sink.write(line(event));
  }
}

function line(event: { type: string; object: unknown }): Uint8Array {
  const { type, object } = event;
  return new TextEncoder().encode(`${JSON.stringify({ type, object })}\n`);
}
