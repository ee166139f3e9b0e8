import type { Resource } from "../api/resource.ts";
import type { Random } from "../kernel/random.ts";
import type { WireRequest, WireResponse } from "../kernel/wire.ts";
import { isStream } from "../kernel/wire.ts";
import type { ResourceHandler, ResourceRequest } from "./contract.ts";
import type { Log } from "./log.ts";

/** What the tests of this room share. Nothing of it runs in production. */

/** The same numbers at every run: a small congruential generator. */
export function createSeededRandom(seed = 1): Random {
  let state = seed >>> 0;
  const number = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  const bytes = (count: number): Uint8Array => {
    return Uint8Array.from({ length: count }, () => Math.floor(number() * 256));
  };
  return { number, bytes, uuid: () => Buffer.from(bytes(16)).toString("hex") };
}

export interface LogLine {
  readonly level: string;
  readonly message: string;
  readonly fields: Record<string, unknown>;
}

export function createLogBook(): { log: Log; lines: LogLine[] } {
  const lines: LogLine[] = [];
  const log: Log = (level, message, fields = {}) => lines.push({ level, message, fields });
  return { log, lines };
}

export function sampleResource(changes: Partial<Resource> & { plural: string }): Resource {
  return {
    group: "berth.dev",
    version: "v1alpha1",
    kind: changes.plural,
    singular: changes.plural.slice(0, -1),
    shortNames: [],
    categories: [],
    namespaced: true,
    description: "",
    schema: { type: "object" },
    subresources: { status: true },
    columns: [],
    served: true,
    ...changes,
  };
}

const core = { group: "", version: "v1", subresources: {} };

/** Enough kinds to tell every case apart: with and without namespaces, parts, secrets. */
export const sampleResources: readonly Resource[] = [
  sampleResource({
    ...core,
    plural: "namespaces",
    namespaced: false,
    subresources: { status: true },
  }),
  sampleResource({ ...core, plural: "secrets" }),
  sampleResource({ ...core, plural: "configmaps" }),
  sampleResource({ plural: "virtualmachines" }),
  sampleResource({
    plural: "vmsets",
    subresources: {
      status: true,
      scale: { specReplicasPath: ".spec.replicas", statusReplicasPath: ".status.replicas" },
    },
  }),
  sampleResource({ plural: "hypervisors", namespaced: false }),
  sampleResource({ plural: "vmnetworks", namespaced: false }),
  sampleResource({ plural: "claims", namespaced: false, subresources: {} }),
];

/** A handler that answers every request with what it was asked, and remembers it. */
export function createEchoHandler(): ResourceHandler & { requests: ResourceRequest[] } {
  const requests: ResourceRequest[] = [];
  return {
    requests,
    handle: async (request) => {
      requests.push(request);
      const { verb, resource, namespace, name, subresource } = request;
      const echo = { verb, resource: resource.plural, namespace, name, subresource };
      return { status: 200, headers: {}, body: Buffer.from(JSON.stringify(echo)) };
    },
    close: () => {},
  };
}

export function wireRequest(method: string, url: string, token?: string): WireRequest {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return { method, url, headers, body: new Uint8Array(0) };
}

export function withBody(request: WireRequest, body: unknown): WireRequest {
  const bytes = body instanceof Uint8Array ? body : Buffer.from(JSON.stringify(body));
  const headers = { ...request.headers, "content-type": "application/json" };
  return { ...request, headers, body: bytes };
}

export function bodyText(response: WireResponse): string {
  const { body } = response;
  if (isStream(body)) throw new Error("the response is a stream");
  return Buffer.concat(body instanceof Uint8Array ? [body] : body).toString();
}

/** The body as JSON, loosely typed: tests look into it by name. */
export function bodyJson(response: WireResponse): Record<string, unknown> {
  return JSON.parse(bodyText(response)) as Record<string, unknown>;
}
