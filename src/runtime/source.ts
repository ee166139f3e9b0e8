import type { Informer } from "../client/index.ts";
import { isJsonObject, jsonEqual } from "../kernel/json.ts";
import { objectKey, type KubeObject } from "../kernel/object.ts";

/**
 * Why a key should be looked at.
 * - `edit`: what is declared changed. Old failures count no more.
 * - `changed`: something that it depends on changed. It runs at once, also out of a backoff or a
 *   stall, but earlier failures still count.
 * - `resync`: nothing is known to have changed. What waits for its next attempt goes on waiting.
 */
export type Trigger = "edit" | "changed" | "resync";

/** Where a controller's keys come from. Events only say where to look, never what is there. */
export interface Source {
  /** Resolves when the source is complete; a controller does nothing before. */
  readonly synced: Promise<void>;
  /** Every key there is, for a resync. */
  keys(): readonly string[];
  /** Calls back for each key that should be looked at, beginning with all; returns what ends it. */
  on(look: (key: string, trigger: Trigger) => void): () => void;
}

/**
 * The objects that a controller owns. Its own writes to status come back as updates and are not
 * looked at: they would override every wait and every backoff.
 */
export function ownObjects<Read extends KubeObject>(informer: Informer<Read>): Source {
  return {
    synced: informer.synced,
    keys: () => informer.list().map(({ metadata }) => objectKey(metadata)),
    on: (look) => {
      let isCatchingUp = true;
      const stop = informer.on({
        added: ({ metadata }) => {
          const isOld = isCatchingUp || !informer.isSynced();
          look(objectKey(metadata), isOld ? "resync" : "edit");
        },
        updated: (object, old) => {
          if (isEdit(object, old)) look(objectKey(object.metadata), "edit");
        },
        deleted: ({ metadata }) => look(objectKey(metadata), "edit"),
      });
      isCatchingUp = false;
      return stop;
    },
  };
}

/**
 * Objects of another kind, and the keys that depend on each. Where `partOf` says what of an object
 * matters to them, an update that changes neither that nor the keys is not looked at.
 */
export function relatedObjects<Read extends KubeObject>(
  informer: Informer<Read>,
  keysOf: (object: Read) => readonly string[],
  partOf: (object: Read) => unknown = (object) => object,
): Source {
  return {
    synced: informer.synced,
    keys: () => [],
    on: (look) => {
      const lookAll = (keys: readonly string[]): void => {
        for (const key of new Set(keys)) look(key, "changed");
      };
      return informer.on({
        added: (object) => lookAll(keysOf(object)),
        // What it pointed to before must hear of it too.
        updated: (object, old) => {
          const isNews = !jsonEqual([keysOf(old), partOf(old)], [keysOf(object), partOf(object)]);
          if (isNews) lookAll([...keysOf(old), ...keysOf(object)]);
        },
        deleted: (old) => lookAll(keysOf(old)),
      });
    },
  };
}

/**
 * Whether more than the status changed, and more than the bookkeeping around it. A status that is
 * gone was taken away by somebody else: whoever wrote it has to say it again.
 */
function isEdit(object: KubeObject, old: KubeObject): boolean {
  const isLost = !hasStatus(object) && hasStatus(old);
  return isLost || !jsonEqual(declaration(object), declaration(old));
}

function hasStatus(object: KubeObject): boolean {
  const { status } = object;
  return isJsonObject(status) && Object.keys(status).length > 0;
}

function declaration(object: KubeObject): KubeObject {
  const { status: _status, ...declared } = object;
  const { resourceVersion: _version, managedFields: _managed, ...metadata } = object.metadata;
  return { ...declared, apiVersion: object.apiVersion, kind: object.kind, metadata };
}
