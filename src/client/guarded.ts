import { guard } from "../kernel/guard.ts";
import type { KubeObject } from "../kernel/object.ts";
import type { Client, ObjectClient } from "./client.ts";
import { NetworkError } from "./errors.ts";
import type { Kind } from "./kind.ts";

/**
 * The same client, for somebody who may write only at times: who leads, for example. Whether it may
 * is asked in the tick in which the request leaves; a write that may not go out is refused as one
 * that never reached the server. Reading goes on.
 */
export function guardWrites(client: Client, mayWrite: () => boolean): Client {
  const fenced = <T>(write: () => Promise<T>): Promise<T> => {
    if (guard("client-fence", mayWrite())) return write();
    return Promise.reject(new NetworkError("Unreachable", "this process may not write now"));
  };
  return {
    of<Read extends KubeObject, Written>(kind: Kind<Read, Written>): ObjectClient<Read, Written> {
      const objects = client.of(kind);
      return {
        ...objects,
        create: (...args) => fenced(() => objects.create(...args)),
        update: (...args) => fenced(() => objects.update(...args)),
        updateStatus: (...args) => fenced(() => objects.updateStatus(...args)),
        patch: (...args) => fenced(() => objects.patch(...args)),
        delete: (...args) => fenced(() => objects.delete(...args)),
      };
    },
  };
}
