import { setImmediate } from "node:timers/promises";
import { NetworkError, type Transport } from "../client/index.ts";
import { applyJsonPatch } from "../kernel/json-patch.ts";
import { isJsonObject, type Json, type JsonObject } from "../kernel/json.ts";
import { applyMergePatch } from "../kernel/merge-patch.ts";
import type { Random } from "../kernel/random.ts";
import { ApiError } from "../kernel/status.ts";
import type { VirtualClock } from "../kernel/virtual-clock.ts";
import type { WireRequest, WireResponse } from "../kernel/wire.ts";

/** What the tests of this room share: time, chance, and a server of any objects. */

/** Lets everything happen that can happen without time passing. */
export async function flush(): Promise<void> {
  for (let i = 0; i < 3; i++) await setImmediate();
}

/** Lets time pass, timer by timer, and everything happen that comes of each. */
export async function pass(clock: VirtualClock, ms: number): Promise<void> {
  await flush();
  const endMs = clock.monotonicMs() + ms;
  for (let leftMs = ms; leftMs > 0; leftMs = endMs - clock.monotonicMs()) {
    clock.advance(Math.min(leftMs, clock.nextInMs() ?? leftMs));
    await flush();
  }
}

/** The same numbers at every run. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const number = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const bytes = (count: number): Uint8Array => {
    return Uint8Array.from({ length: count }, () => Math.floor(number() * 256));
  };
  return { number, bytes, uuid: () => Buffer.from(bytes(16)).toString("hex") };
}

/** Always in the middle: no jitter. */
export const steadyRandom: Random = { ...seededRandom(1), number: () => 0.5 };

export type Fault = "none" | "away" | "refuses" | "loses the reply" | "breaks after doing it";

/** Objects over the wire by their paths, with versions and conflicts, and nothing else. */
export class FakeApi {
  fault: Fault = "none";
  readonly objects = new Map<string, JsonObject>();
  /** "GET /path" of every request, in order. */
  readonly requests: string[] = [];
  #revision = 0;

  readonly transport: Transport = async (request) => {
    if (this.fault === "away") throw new NetworkError("Unreachable", "connection refused");
    if (this.fault === "refuses") return answer(503, { kind: "Status", code: 503 });
    const response = this.handle(request);
    if (this.fault === "loses the reply") throw new Error("connection reset");
    if (this.fault === "breaks after doing it") return answer(500, { kind: "Status", code: 500 });
    return response;
  };

  handle(request: WireRequest): WireResponse {
    this.requests.push(`${request.method} ${request.url}`);
    try {
      return answer(200, this.#do(request));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return answer(error.code, error.toStatus());
    }
  }

  /** The one object whose path ends so. */
  find(ending: string): JsonObject {
    const found = [...this.objects].filter(([path]) => path.endsWith(ending));
    if (found.length !== 1 || !found[0]) throw new Error(`one object at ${ending}`);
    return found[0][1];
  }

  #do({ method, url, body, headers }: WireRequest): Json {
    const path = url.replace(/\?.*/, "").replace(/\/status$/, "");
    const content =
      body.byteLength === 0 ? null : (JSON.parse(Buffer.from(body).toString()) as Json);
    if (method === "POST") return this.#create(path, content);
    const old = this.objects.get(path);
    if (old === undefined) throw new ApiError(404, "NotFound", `${path} not found`);
    if (method === "GET") return old;
    if (method === "DELETE") return this.#delete(path);
    if (method === "PUT") return this.#put(path, content, old);
    const isJsonPatch = headers["content-type"] === "application/json-patch+json";
    const next = isJsonPatch ? applyJsonPatch(old, content) : applyMergePatch(old, content);
    return this.#store(path, next, old);
  }

  #create(collection: string, content: Json): Json {
    const { name } = metadataOf(content);
    if (typeof name !== "string") throw new ApiError(422, "Invalid", "an object has a name");
    const path = `${collection}/${name}`;
    if (this.objects.has(path)) throw new ApiError(409, "AlreadyExists", `${path} already exists`);
    return this.#store(path, content, { metadata: { uid: `uid-${this.#revision + 1}` } });
  }

  #put(path: string, content: Json, old: JsonObject): Json {
    const wanted = metadataOf(content)["resourceVersion"];
    if (wanted !== undefined && wanted !== metadataOf(old)["resourceVersion"]) {
      throw new ApiError(409, "Conflict", `${path} has been modified`);
    }
    return this.#store(path, content, old);
  }

  #delete(path: string): Json {
    this.objects.delete(path);
    return { kind: "Status", status: "Success", metadata: {} };
  }

  #store(path: string, content: Json, old: JsonObject): Json {
    if (!isJsonObject(content)) throw new ApiError(400, "BadRequest", "no object");
    const resourceVersion = String(++this.#revision);
    const { uid = null } = metadataOf(old);
    const object = { ...content, metadata: { ...metadataOf(content), uid, resourceVersion } };
    this.objects.set(path, object);
    return object;
  }
}

function metadataOf(content: Json): JsonObject {
  const metadata = isJsonObject(content) ? content["metadata"] : undefined;
  return isJsonObject(metadata) ? metadata : {};
}

function answer(status: number, body: unknown): WireResponse {
  return { status, headers: {}, body: new TextEncoder().encode(JSON.stringify(body)) };
}
