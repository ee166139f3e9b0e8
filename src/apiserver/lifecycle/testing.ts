import { builtinResources } from "../../api/builtin/index.ts";
import type { Resource } from "../../api/resource.ts";
import { assert } from "../../kernel/assert.ts";
import { formatTime } from "../../kernel/clock.ts";
import {
  apiVersionOf,
  type KubeObject,
  type ObjectMeta,
  type OwnerReference,
} from "../../kernel/object.ts";
import type { Random } from "../../kernel/random.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import {
  createMemoryDisk,
  openStore,
  type Key,
  type MemoryDisk,
  type Store,
} from "../../store/index.ts";
import { createCatalogue } from "../catalogue.ts";
import { bucketOf, idOf, type Catalogue, type ServerEnvironment } from "../contract.ts";
import {
  decode,
  deletionDecision,
  put,
  updateDecision,
  type DeletionOptions,
} from "../objects/index.ts";
import { startLifecycle, type Lifecycle } from "./index.ts";

/** A server without requests for tests: the real store, and objects made by hand. */

export const widgets = customResource("Widget", "widgets", true);
export const zones = customResource("Zone", "zones", false);
/** A kind that nobody serves. */
export const ghosts = customResource("Ghost", "ghosts", true);

export interface World {
  readonly store: Store;
  readonly clock: VirtualClock;
  readonly disk: MemoryDisk;
  /** Starts the lifecycle and waits until it has done all it can. */
  readonly start: () => Promise<Lifecycle>;
  /** Creates, deletes and changes as a client would. */
  readonly create: (resource: Resource, metadata: Named, fields?: Fields) => Promise<void>;
  readonly erase: (resource: Resource, id: string, options?: DeletionOptions) => Promise<void>;
  readonly change: (resource: Resource, id: string, metadata: ObjectMeta) => Promise<void>;
  readonly read: (resource: Resource, id: string) => KubeObject | undefined;
  /** The ids of all objects of a kind. */
  readonly ids: (resource: Resource) => string[];
}

type Named = ObjectMeta & { name: string };
type Fields = Record<string, unknown>;

export interface WorldOptions {
  readonly disk?: MemoryDisk;
  readonly catalogue?: Catalogue;
}

export async function openWorld(options: WorldOptions = {}): Promise<World> {
  const clock = new VirtualClock();
  const disk = options.disk ?? createMemoryDisk();
  const store = await openStore({ journal: disk.open(), clock });
  const catalogue = options.catalogue ?? createCatalogue([...builtinResources, widgets, zones]);
  const runnerOf = (): never => assertNever("the lifecycle runs no schemas");
  const environment: ServerEnvironment = { store, catalogue, clock, random: noRandom, runnerOf };
  const keyOf = (resource: Resource, id: string): Key => ({ bucket: bucketOf(resource), id });
  return {
    store,
    clock,
    disk,
    start: async () => {
      const lifecycle = startLifecycle(environment);
      await lifecycle.settled();
      return lifecycle;
    },
    create: async (resource, metadata, fields = {}) => {
      const object = objectOf(resource, metadata, { ...fields, nowMs: clock.nowMs() });
      const id = idOf(object.metadata.namespace, metadata.name);
      await store.write(keyOf(resource, id), () => put(object));
    },
    erase: async (resource, id, deletion = {}) => {
      await store.write(keyOf(resource, id), (current) => {
        assert(current, `${id} is there to be deleted`);
        return deletionDecision(decode(current), deletion, clock.nowMs());
      });
    },
    change: async (resource, id, metadata) => {
      await store.write(keyOf(resource, id), (current) => {
        assert(current, `${id} is there to be changed`);
        const object = decode(current);
        return updateDecision({ ...object, metadata: { ...object.metadata, ...metadata } });
      });
    },
    read: (resource, id) => {
      const entry = store.get(keyOf(resource, id));
      return entry && decode(entry);
    },
    ids: (resource) => {
      const listed = store.list({ bucket: bucketOf(resource) });
      return listed.ok ? listed.entries.map((entry) => entry.id) : [];
    },
  };
}

/** A reference to an object of this kind; the uid is the name unless told otherwise. */
export function owner(
  resource: Resource,
  name: string,
  more: Partial<OwnerReference> = {},
): OwnerReference {
  const apiVersion = apiVersionOf(resource.group, resource.version);
  return { apiVersion, kind: resource.kind, name, uid: name, ...more };
}

export function builtin(plural: string): Resource {
  const found = builtinResources.find((resource) => resource.plural === plural);
  assert(found, `${plural} are built in`);
  return found;
}

function objectOf(
  resource: Resource,
  metadata: Named,
  { nowMs, ...fields }: Fields & { nowMs: number },
): KubeObject {
  return {
    apiVersion: apiVersionOf(resource.group, resource.version),
    kind: resource.kind,
    ...fields,
    metadata: {
      uid: metadata.name,
      generation: 1,
      creationTimestamp: formatTime(nowMs),
      ...(resource.namespaced ? { namespace: "default" } : {}),
      ...metadata,
    },
  };
}

function customResource(kind: string, plural: string, namespaced: boolean): Resource {
  return {
    group: "berth.dev",
    version: "v1",
    kind,
    plural,
    singular: kind.toLowerCase(),
    shortNames: [],
    categories: [],
    namespaced,
    description: "A kind for tests.",
    schema: { type: "object" },
    subresources: {},
    columns: [],
    served: true,
  };
}

const noRandom: Random = {
  number: () => assertNever("the lifecycle needs no randomness"),
  bytes: () => assertNever("the lifecycle needs no randomness"),
  uuid: () => assertNever("the lifecycle needs no randomness"),
};

function assertNever(sentence: string): never {
  throw new Error(sentence);
}
