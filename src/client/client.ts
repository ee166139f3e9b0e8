import { assert } from "../kernel/assert.ts";
import type { Clock } from "../kernel/clock.ts";
import { isJsonObject, type Json } from "../kernel/json.ts";
import {
  apiVersionOf,
  type KubeList,
  type KubeObject,
  type ObjectMeta,
  type WatchEvent,
} from "../kernel/object.ts";
import { apiErrorOf, isExpired } from "./errors.ts";
import { exchange, exchangeLines, type Call, type ExchangeOptions } from "./exchange.ts";
import type { Kind, KindRoute, ObjectName } from "./kind.ts";
import { collectionUrl, objectUrl, type Query } from "./routes.ts";
import type { Transport } from "./transport.ts";

export interface ClientOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  /** How long the server may take to answer. A watch only has to begin within it. */
  readonly timeoutMs?: number;
  readonly userAgent?: string;
}

/** Longer than a server that is alive needs, shorter than people wait. */
const timeoutMsDefault = 30_000;
/** Objects per page; kubectl asks for as many. */
const pageItems = 500;

/** A typed client of the Kubernetes API. It holds no state; make as many as you like. */
export interface Client {
  of<Read extends KubeObject, Written>(kind: Kind<Read, Written>): ObjectClient<Read, Written>;
}

/**
 * The objects of one kind. All methods reject with an ApiError where the server refuses, and with a
 * NetworkError where it does not answer. Nothing is ever sent twice.
 */
export interface ObjectClient<Read extends KubeObject = KubeObject, Written = Read> {
  get(object: ObjectName, options?: CallOptions): Promise<Read>;
  /** All objects, page by page at one revision. */
  list(options?: ListOptions): Promise<KubeList<Read>>;
  create(object: Written, options?: WriteOptions): Promise<Read>;
  /** Replaces the object; its resourceVersion, if it has one, must still be the newest. */
  update(object: Written, options?: WriteOptions): Promise<Read>;
  updateStatus(object: Read | Written, options?: WriteOptions): Promise<Read>;
  patch(object: ObjectName, patch: Patch, options?: PatchOptions): Promise<Read>;
  /** Resolves with the object if it stays for its finalizers, with undefined if it is gone. */
  delete(object: ObjectName, options?: DeleteOptions): Promise<Read | undefined>;
  /**
   * Changes as they come, until the server ends the watch or the loop is left. An ERROR event is
   * thrown as an ApiError.
   */
  watch(options?: WatchOptions): AsyncGenerator<WatchEvent<Read>, void, undefined>;
}

export interface CallOptions {
  readonly signal?: AbortSignal;
}

export interface SelectOptions extends CallOptions {
  /** Absent: all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly resourceVersion?: string;
}

export interface ListOptions extends SelectOptions {
  readonly resourceVersionMatch?: "Exact" | "NotOlderThan";
}

export interface WatchOptions extends SelectOptions {
  readonly allowWatchBookmarks?: boolean;
  readonly timeoutSeconds?: number;
}

export interface WriteOptions extends CallOptions {
  readonly fieldManager?: string;
  readonly dryRun?: boolean;
}

/** A merge patch, or the operations of a JSON patch. */
export type Patch = { readonly merge: object } | { readonly json: readonly object[] };

export interface PatchOptions extends WriteOptions {
  readonly subresource?: "status" | "scale";
}

export interface DeleteOptions extends CallOptions {
  /** The object must still have this uid, or be of this resourceVersion. */
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  readonly propagationPolicy?: "Orphan" | "Background" | "Foreground";
  readonly dryRun?: boolean;
}

export function createClient(options: ClientOptions): Client {
  const exchangeOptions: ExchangeOptions = {
    transport: options.transport,
    clock: options.clock,
    timeoutMs: options.timeoutMs ?? timeoutMsDefault,
    userAgent: options.userAgent ?? "berth",
  };
  return { of: (kind) => objectClient(exchangeOptions, kind) };
}

function objectClient<Read extends KubeObject, Written>(
  options: ExchangeOptions,
  kind: Kind<Read, Written>,
): ObjectClient<Read, Written> {
  const apiVersion = apiVersionOf(kind.group, kind.version);
  const typed = (object: unknown): object => {
    return { apiVersion, kind: kind.kind, ...(isJsonObject(object) ? object : {}) };
  };
  const call = (request: Call): Promise<Read> => exchange(options, request, readObject<Read>);
  const put = async (
    object: Read | Written,
    subresource: "status" | undefined,
    write: WriteOptions,
  ): Promise<Read> => {
    const at = { ...nameOf(object), ...(subresource ? { subresource } : {}) };
    const url = objectUrl(kind, at, writeQuery(write));
    const { signal } = write;
    return call({ method: "PUT", url, body: typed(object), signal });
  };
  return {
    get: async (object, { signal } = {}) => {
      return call({ method: "GET", url: objectUrl(kind, object), signal });
    },
    list: (list = {}) => listAll(options, kind, list),
    create: async (object, write = {}) => {
      const { namespace } = metadataOf(object);
      const url = collectionUrl(kind, namespace, writeQuery(write));
      const { signal } = write;
      return call({ method: "POST", url, body: typed(object), signal });
    },
    update: (object, write = {}) => put(object, undefined, write),
    updateStatus: (object, write = {}) => put(object, "status", write),
    patch: async (object, patch, { subresource, ...write } = {}) => {
      const at = { ...object, ...(subresource ? { subresource } : {}) };
      const url = objectUrl(kind, at, writeQuery(write));
      const { signal } = write;
      return call({ method: "PATCH", url, ...patchBody(patch), signal });
    },
    delete: async (object, { signal, dryRun, ...rest } = {}) => {
      const body = { apiVersion: "v1", kind: "DeleteOptions", ...rest, ...dryRunMember(dryRun) };
      const url = objectUrl(kind, object);
      const request: Call = { method: "DELETE", url, body, signal };
      return exchange(options, request, (answer) => {
        return isJsonObject(answer) && answer["kind"] === "Status" ? undefined : readObject(answer);
      });
    },
    watch: (watch = {}) => watchEvents(options, kind, watch),
  };
}

/** A page that is no longer to be had (410) is replaced by one list without pages. */
async function listAll<Read extends KubeObject, Written>(
  options: ExchangeOptions,
  kind: Kind<Read, Written>,
  { namespace, signal, ...query }: ListOptions,
): Promise<KubeList<Read>> {
  const page = async (more: Query): Promise<KubeList<Read>> => {
    const url = collectionUrl(kind, namespace, { ...query, ...more });
    const request: Call = { method: "GET", url, signal };
    return exchange(options, request, (answer) => readList<Read>(answer, kind));
  };
  const first = await page({ limit: pageItems });
  const items = first.items;
  try {
    for (let { metadata } = first; metadata.continue;) {
      // The token carries the revision; a second one beside it is refused.
      const token = { limit: pageItems, continue: metadata.continue };
      const next = await page({
        ...token,
        resourceVersion: undefined,
        resourceVersionMatch: undefined,
      });
      items.push(...next.items);
      metadata = next.metadata;
    }
  } catch (error) {
    if (!isExpired(error)) throw error;
    return page({});
  }
  const { continue: _done, remainingItemCount: _left, ...metadata } = first.metadata;
  return { ...first, metadata, items };
}

async function* watchEvents<Read extends KubeObject, Written>(
  options: ExchangeOptions,
  kind: Kind<Read, Written>,
  { namespace, signal, ...query }: WatchOptions,
): AsyncGenerator<WatchEvent<Read>, void, undefined> {
  const url = collectionUrl(kind, namespace, { watch: true, ...query });
  yield* exchangeLines(options, { method: "GET", url, signal }, readEvent<Read>);
}

function patchBody(patch: Patch): { body: unknown; contentType: string } {
  if ("merge" in patch) {
    return { body: patch.merge, contentType: "application/merge-patch+json" };
  }
  return { body: patch.json, contentType: "application/json-patch+json" };
}

function writeQuery({ fieldManager, dryRun }: WriteOptions): Query {
  return { fieldManager, dryRun: dryRun ? "All" : undefined };
}

function dryRunMember(dryRun: boolean | undefined): object {
  return dryRun ? { dryRun: ["All"] } : {};
}

function nameOf(object: unknown): ObjectName {
  const { name = "", namespace } = metadataOf(object);
  return namespace === undefined ? { name } : { namespace, name };
}

function metadataOf(object: unknown): ObjectMeta {
  return isJsonObject(object) && isJsonObject(object["metadata"]) ? object["metadata"] : {};
}

// The edge: the outer shape of an answer is checked here, the rest is the server's word.

function readObject<Read extends KubeObject>(answer: Json): Read {
  assert(isJsonObject(answer) && isJsonObject(answer["metadata"]), "the answer is an object");
  // cast: the server sends what its kind says.
  return answer as unknown as Read;
}

/** The items of a built-in list come without their kind, which is said once for all. */
function readList<Read extends KubeObject>(answer: Json, kind: KindRoute): KubeList<Read> {
  assert(isJsonObject(answer) && isJsonObject(answer["metadata"]), "the answer is a list");
  const items = answer["items"] ?? [];
  assert(Array.isArray(items) && items.every(isJsonObject), "the answer is a list of objects");
  const common = { apiVersion: apiVersionOf(kind.group, kind.version), kind: kind.kind };
  const list = { ...answer, items: items.map((item) => ({ ...common, ...item })) };
  // cast: the server sends what its kind says.
  return list as unknown as KubeList<Read>;
}

function readEvent<Read extends KubeObject>(line: Json): WatchEvent<Read> {
  assert(isJsonObject(line) && isJsonObject(line["object"]), "the line is a watch event");
  if (line["type"] === "ERROR") {
    const code = line["object"]["code"];
    throw apiErrorOf(typeof code === "number" ? code : 500, line["object"], "");
  }
  // cast: the server sends what its kind says.
  return line as unknown as WatchEvent<Read>;
}
