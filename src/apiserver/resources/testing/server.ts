import type { Resource } from "../../../api/resource.ts";
import { builtinResources } from "../../../api/builtin/index.ts";
import { isJsonObject } from "../../../kernel/json.ts";
import type { KubeObject } from "../../../kernel/object.ts";
import type { Random } from "../../../kernel/random.ts";
import { ApiError, type Status } from "../../../kernel/status.ts";
import { isStream, type WireResponse, type WireSink } from "../../../kernel/wire.ts";
import { VirtualClock } from "../../../kernel/virtual-clock.ts";
import { createMemoryDisk, openStore, type MemoryDisk, type Store } from "../../../store/index.ts";
import { createSchemaRunners } from "../../admission/index.ts";
import { createCatalogue } from "../../catalogue.ts";
import type { ResourceHandler, ResourceRequest, Verb } from "../../contract.ts";
import { createResourceHandler } from "../handler.ts";

/** A whole server of objects for tests: the real store on a disk of memory, and a clock by hand. */

/** The same numbers in every run; uuids count up. */
export function seededRandom(seed = 1): Random {
  let state = seed;
  let uuids = 0;
  const number = (): number => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
  return {
    number,
    bytes: (count) => Uint8Array.from({ length: count }, () => Math.floor(number() * 256)),
    uuid: () => `00000000-0000-4000-8000-${String(++uuids).padStart(12, "0")}`,
  };
}

/** A custom kind with status and scale, and rules of a schema. */
export const gadgetResource: Resource = {
  group: "berth.dev",
  version: "v1",
  kind: "Gadget",
  plural: "gadgets",
  singular: "gadget",
  shortNames: ["gd"],
  categories: ["berth"],
  namespaced: true,
  description: "A kind for tests.",
  schema: {
    type: "object",
    properties: {
      spec: {
        type: "object",
        properties: {
          size: { type: "integer", minimum: 0 },
          colour: { type: "string", default: "red" },
          replicas: { type: "integer" },
          parts: { type: "array", items: { type: "string" } },
        },
      },
      status: {
        type: "object",
        properties: {
          replicas: { type: "integer" },
          selector: { type: "string" },
          phase: { type: "string" },
        },
      },
    },
  },
  subresources: {
    status: true,
    scale: {
      specReplicasPath: ".spec.replicas",
      statusReplicasPath: ".status.replicas",
      labelSelectorPath: ".status.selector",
    },
  },
  columns: [
    { name: "Size", type: "integer", jsonPath: ".spec.size", description: "How big." },
    { name: "Parts", type: "string", jsonPath: ".spec.parts", description: "Of what." },
    { name: "Phase", type: "string", jsonPath: ".status.phase", description: "How.", priority: 1 },
    {
      name: "Age",
      type: "date",
      jsonPath: ".metadata.creationTimestamp",
      description: "How old.",
    },
  ],
  served: true,
};

/** A custom kind without subresources and without namespaces. */
const noteResource: Resource = {
  ...gadgetResource,
  kind: "Note",
  plural: "notes",
  singular: "note",
  shortNames: [],
  namespaced: false,
  subresources: {},
  columns: [],
};

export interface Answer<T = KubeObject> {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly body: T;
}

export interface Ask {
  readonly namespace?: string | undefined;
  readonly name?: string;
  readonly subresource?: "status" | "scale";
  readonly query?: Record<string, string> | string;
  readonly headers?: Record<string, string>;
  readonly body?: unknown;
}

export interface TestServer {
  readonly store: Store;
  readonly disk: MemoryDisk;
  readonly clock: VirtualClock;
  readonly handler: ResourceHandler;
  /** Asks for something, and gives the answer, also where it is a refusal. */
  ask<T = KubeObject>(verb: Verb, plural: string, what?: Ask): Promise<Answer<T>>;
  /** The Status of what must be refused. */
  refusal(verb: Verb, plural: string, what?: Ask): Promise<Status>;
  watch(plural: string, what?: Ask, reader?: Reader): Promise<TestWatch>;
  /** The same, or undefined where it is refused. */
  tryWatch(plural: string, what?: Ask): Promise<TestWatch | undefined>;
}

/** Opens a server with the namespaces `default` and `other`. */
export async function openServer(
  options: { storeLimits?: Parameters<typeof openStore>[0]["limits"]; random?: Random } = {},
): Promise<TestServer> {
  const clock = new VirtualClock();
  const disk = createMemoryDisk();
  const { storeLimits = {}, random = seededRandom() } = options;
  const store = await openStore({ journal: disk.open(), clock, limits: storeLimits });
  const catalogue = createCatalogue([...builtinResources, gadgetResource, noteResource]);
  const runnerOf = createSchemaRunners();
  const handler = createResourceHandler({ store, catalogue, clock, random, runnerOf });
  const find = (plural: string): Resource => {
    const found = catalogue.all().find((resource) => resource.plural === plural);
    if (!found) throw new Error(`no ${plural} in the catalogue`);
    return found;
  };
  const handle = (verb: Verb, plural: string, what: Ask): Promise<WireResponse> =>
    handler.handle(requestOf(verb, find(plural), what));
  const server: TestServer = {
    store,
    disk,
    clock,
    handler,
    ask: async (verb, plural, what = {}) => {
      try {
        return answerOf(await handle(verb, plural, what));
      } catch (error) {
        if (!(error instanceof ApiError)) throw error;
        const body = Buffer.from(JSON.stringify(error.toStatus()));
        const headers = { "content-type": "application/json" };
        return answerOf({ status: error.code, headers, body });
      }
    },
    refusal: async (verb, plural, what) => {
      const answer = await server.ask<Status>(verb, plural, what);
      if (answer.status < 400) throw new Error(`it was not refused: ${answer.text}`);
      return answer.body;
    },
    watch: async (plural, what = {}, reader = {}) => {
      return new TestWatch(await handle("watch", plural, what), reader);
    },
    tryWatch: async (plural, what) => {
      try {
        return await server.watch(plural, what);
      } catch (error) {
        if (error instanceof ApiError) return undefined;
        throw error;
      }
    },
  };
  for (const name of ["default", "other"]) {
    await server.ask("create", "namespaces", { body: { metadata: { name } } });
  }
  return server;
}

export function gadget(name: string, fields: Record<string, unknown> = {}): KubeObject {
  const { metadata, ...rest } = fields;
  return {
    apiVersion: "berth.dev/v1",
    kind: "Gadget",
    metadata: { name, ...(isJsonObject(metadata) ? metadata : {}) },
    spec: { size: 1 },
    ...rest,
  };
}

export interface TestEvent {
  readonly type: string;
  readonly object: KubeObject & Record<string, unknown>;
}

/** Who reads a watch: one who takes everything at once, unless told to be slow. */
export interface Reader {
  readonly isSlow?: boolean;
  readonly onChunk?: (chunk: Uint8Array) => void;
}

export class TestWatch {
  readonly response: WireResponse;
  readonly leave: () => void;
  isEnded = false;
  readonly #reader: Reader;
  readonly #chunks: Uint8Array[] = [];
  #bufferedBytes = 0;

  constructor(response: WireResponse, reader: Reader) {
    this.response = response;
    this.#reader = reader;
    if (!isStream(response.body)) throw new Error("a watch answers with a stream");
    const sink: WireSink = {
      write: (chunk) => this.#take(chunk),
      end: () => void (this.isEnded = true),
      bufferedBytes: () => (reader.isSlow ? this.#bufferedBytes : 0),
    };
    this.leave = response.body.start(sink);
  }

  get events(): TestEvent[] {
    const text = Buffer.concat(this.#chunks).toString("utf8");
    const lines = text.split("\n").filter((line) => line !== "");
    // cast: a watch writes events, one a line.
    return lines.map((line) => JSON.parse(line) as TestEvent);
  }

  /** "ADDED a", "BOOKMARK 7": what happened, in short. */
  get story(): string[] {
    return this.events.map(({ type, object }) => {
      return `${type} ${object.metadata.name ?? object.metadata.resourceVersion ?? ""}`;
    });
  }

  #take(chunk: Uint8Array): void {
    if (this.isEnded) throw new Error("written after the end");
    this.#bufferedBytes += chunk.byteLength;
    this.#chunks.push(chunk);
    this.#reader.onChunk?.(chunk);
  }
}

function requestOf(verb: Verb, resource: Resource, what: Ask): ResourceRequest {
  const { name, subresource, query = {}, headers = {}, body } = what;
  const namespace = "namespace" in what ? what.namespace : "default";
  return {
    verb,
    resource,
    namespace: resource.namespaced ? namespace : undefined,
    name,
    subresource,
    query: new URLSearchParams(query),
    headers,
    body: bytesOf(body),
    user: { name: "tester", uid: "", groups: [] },
  };
}

function bytesOf(body: unknown): Uint8Array {
  if (body === undefined) return new Uint8Array();
  if (body instanceof Uint8Array) return body;
  return Buffer.from(typeof body === "string" ? body : JSON.stringify(body));
}

function answerOf<T>({ status, headers, body }: WireResponse): Answer<T> {
  if (isStream(body)) throw new Error("a stream is not an answer");
  const text = Buffer.concat(body instanceof Uint8Array ? [body] : [...body]).toString("utf8");
  const isJson = headers["content-type"] === "application/json";
  // cast: tests know the type of what they asked for.
  return { status, headers, text, body: (isJson ? JSON.parse(text) : undefined) as T };
}
