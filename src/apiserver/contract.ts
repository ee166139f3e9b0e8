import type { Resource } from "../api/resource.ts";
import type { Clock } from "../kernel/clock.ts";
import type { KubeObject } from "../kernel/object.ts";
import type { Random } from "../kernel/random.ts";
import type { FieldError } from "../kernel/status.ts";
import type { WireResponse } from "../kernel/wire.ts";
import type { Store } from "../store/store.ts";

/** The contract between the rooms of the server: who hands what to whom. */

/** Who asks. Made by authentication, read by authorization and `auth whoami`. */
export interface User {
  readonly name: string;
  readonly uid: string;
  readonly groups: readonly string[];
}

/** The verbs of Kubernetes' authorization. */
export type Verb =
  | "get"
  | "list"
  | "watch"
  | "create"
  | "update"
  | "patch"
  | "delete"
  | "deletecollection";

/** A request for objects after routing: what is wanted of which resource, nothing checked yet. */
export interface ResourceRequest {
  readonly verb: Verb;
  readonly resource: Resource;
  /** Absent for cluster-wide resources and for lists over all namespaces. */
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: "status" | "scale" | undefined;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
  readonly user: User;
}

/** Serves objects. Refusals are thrown as ApiError; anything else thrown is a bug and a 500. */
export interface ResourceHandler {
  handle(request: ResourceRequest): Promise<WireResponse>;
  /** Open watches end, so that the server can close. */
  close(): void;
}

/** The kinds that are served. It may grow while running, when users' CRDs come. */
export interface Catalogue {
  all(): readonly Resource[];
  find(group: string, version: string, plural: string): Resource | undefined;
  findKind(group: string, version: string, kind: string): Resource | undefined;
  /** Changes whenever the catalogue does: for ETags and caches. */
  generation(): number;
}

/** Runs one kind's schema. Compiled once per resource and schema, then used for every write. */
export interface SchemaRunner {
  /**
   * Drops fields that the schema does not know, in place, and returns their paths
   * ("spec.foo") for strict field validation. Also finds nothing in preserved places.
   */
  prune(object: KubeObject): string[];
  /** Fills in defaults, in place. */
  applyDefaults(object: KubeObject): void;
  /** Schema and CEL. `previous` is given on update, for transition rules and ratcheting. */
  validate(object: KubeObject, previous: KubeObject | undefined): FieldError[];
}

export type SchemaRunnerOf = (resource: Resource) => SchemaRunner;

/** What every part of the server is built from. */
export interface ServerEnvironment {
  readonly store: Store;
  readonly catalogue: Catalogue;
  readonly clock: Clock;
  readonly random: Random;
  readonly runnerOf: SchemaRunnerOf;
}

/** The store bucket of a resource. The version is not part of it: one object, many versions. */
export function bucketOf(resource: { group: string; plural: string }): string {
  return resource.group === "" ? `core/${resource.plural}` : `${resource.group}/${resource.plural}`;
}

/** The store id of an object. A name cannot contain a slash, so the two forms cannot collide. */
export function idOf(namespace: string | undefined, name: string): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}
