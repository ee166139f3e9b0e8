import type { Client, Informer, Kind, ObjectClient } from "../../client/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import { objectKey, type KubeObject } from "../../kernel/object.ts";

/** Measures how long our own writes take until our own copies show them. */
export interface WatchDelay {
  /** The same client, whose writes are timed. */
  readonly client: Client;
  /** The copy in which writes of a kind are looked for. Until then they are not timed. */
  follow(kind: string, informer: Pick<Informer<KubeObject>, "get" | "on">): void;
}

interface Write {
  readonly version: number;
  readonly startMs: number;
}

/** Writes whose echo is waited for. Of more than that the oldest are forgotten. */
const pendingMax = 4096;

export function measureWatchDelay(
  client: Client,
  clock: Clock,
  observe: (delayMs: number) => void,
): WatchDelay {
  const copies = new Map<string, Pick<Informer<KubeObject>, "get">>();
  const pending = new Map<string, Write>();
  const written = (object: KubeObject, startMs: number): void => {
    const copy = copies.get(object.kind);
    if (copy === undefined) return;
    const version = versionOf(object);
    const seen = copy.get(objectKey(object.metadata));
    if (seen !== undefined && versionOf(seen) >= version) {
      return observe(clock.monotonicMs() - startMs);
    }
    pending.set(keyOf(object), { version, startMs });
    const [oldest] = pending.keys();
    if (pending.size > pendingMax && oldest !== undefined) pending.delete(oldest);
  };
  const seen = (object: KubeObject): void => {
    const write = pending.get(keyOf(object));
    if (write === undefined || versionOf(object) < write.version) return;
    pending.delete(keyOf(object));
    observe(clock.monotonicMs() - write.startMs);
  };
  return {
    client: timeWrites(client, clock, written),
    follow: (kind, informer) => {
      copies.set(kind, informer);
      informer.on({ added: seen, updated: seen, deleted: (old) => pending.delete(keyOf(old)) });
    },
  };
}

function timeWrites(
  client: Client,
  clock: Clock,
  written: (object: KubeObject, startMs: number) => void,
): Client {
  const time = async <Read extends KubeObject>(write: () => Promise<Read>): Promise<Read> => {
    const startMs = clock.monotonicMs();
    const object = await write();
    written(object, startMs);
    return object;
  };
  return {
    of<Read extends KubeObject, Written>(kind: Kind<Read, Written>): ObjectClient<Read, Written> {
      const objects = client.of(kind);
      return {
        ...objects,
        create: (...args) => time(() => objects.create(...args)),
        update: (...args) => time(() => objects.update(...args)),
        updateStatus: (...args) => time(() => objects.updateStatus(...args)),
        patch: (...args) => time(() => objects.patch(...args)),
      };
    },
  };
}

function keyOf({ kind, metadata }: KubeObject): string {
  return `${kind} ${objectKey(metadata)}`;
}

function versionOf({ metadata }: KubeObject): number {
  return Number(metadata.resourceVersion ?? 0);
}
