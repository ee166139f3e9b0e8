import { apiVersion, claimKind, currentClaim } from "../../api/index.ts";
import type { Claim } from "../../api/index.ts";
import type { Client, Kind, ObjectClient } from "../../client/index.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { demandWhole } from "./whole.ts";

/**
 * The same client, to which every Claim is in today's form, whoever wrote it. Claims are rewritten
 * when a term begins; but an informer may lag behind that, and somebody may bring an old one from
 * an export at any time. One that was read by an older schema is refused.
 */
export function readCurrentClaims(client: Client): Client {
  return {
    of<Read extends KubeObject, Written>(kind: Kind<Read, Written>): ObjectClient<Read, Written> {
      const objects = client.of(kind);
      return kind.plural === claimKind.plural && kind.group === claimKind.group
        ? inCurrentForm(objects)
        : objects;
    },
  };
}

function inCurrentForm<Read extends KubeObject, Written>(
  objects: ObjectClient<Read, Written>,
): ObjectClient<Read, Written> {
  return {
    get: async (...args) => current(await objects.get(...args)),
    list: async (...args) => {
      const list = await objects.list(...args);
      return { ...list, items: list.items.map(current) };
    },
    create: async (...args) => current(await objects.create(...args)),
    update: async (...args) => current(await objects.update(...args)),
    updateStatus: async (...args) => current(await objects.updateStatus(...args)),
    patch: async (...args) => current(await objects.patch(...args)),
    delete: async (...args) => {
      const left = await objects.delete(...args);
      return left && current(left);
    },
    async *watch(...args) {
      for await (const event of objects.watch(...args)) {
        yield { ...event, object: current(event.object) };
      }
    },
  };
}

function current<Read extends KubeObject>(object: Read): Read {
  if (!isClaim(object)) return object;
  demandWhole(object);
  return { ...object, spec: currentClaim(object.spec) };
}

/** A bookmark of a watch has no spec. */
function isClaim(object: KubeObject): object is Claim {
  return object.apiVersion === apiVersion && object.kind === claimKind.kind && "spec" in object;
}
