import type { KubeObject } from "../../kernel/object.ts";
import type { ServedKind } from "../objects/discovery.ts";
import { findObject } from "../objects/read-objects.ts";
import type { Server } from "../objects/server.ts";

/** An object by its kind and name; of a kind without namespaces, whatever the namespace is. */
export type Look = (wanted: Wanted) => Promise<KubeObject | undefined>;

interface Wanted {
  readonly kind: string;
  readonly namespace: string;
  readonly name: string;
}

/** Reads each object once, however many machines refer to it. */
export function createLook(server: Server, served: readonly ServedKind[]): Look {
  const known = new Map<string, Promise<KubeObject | undefined>>();
  return ({ kind: kindName, namespace, name }) => {
    const kind = served.find((candidate) => candidate.kind === kindName);
    if (kind === undefined) return Promise.resolve(undefined);
    const key = [kindName, kind.namespaced ? namespace : "", name].join("/");
    const found = known.get(key) ?? findObject(server, { kind, namespace, name });
    known.set(key, found);
    return found;
  };
}

/** The same, as it would be once these objects were stored. */
export function lookBeyond(look: Look, stored: readonly KubeObject[]): Look {
  return (wanted) => {
    const found = stored.findLast(({ kind, metadata: { name, namespace } }) => {
      const isThere = namespace === undefined || namespace === wanted.namespace;
      return kind === wanted.kind && name === wanted.name && isThere;
    });
    return found === undefined ? look(wanted) : Promise.resolve(found);
  };
}
