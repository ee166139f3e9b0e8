/** One version of what is stored under a key. */
export interface Stored {
  readonly text: string;
  /** How often it was written since it was created. */
  readonly version: number;
  /** When it was written, in revisions of all that is stored. */
  readonly revision: number;
}

/** A real etcd, over the JSON that it serves beside its gRPC. */
export interface Etcd {
  put(key: string, text: string): Promise<void>;
  /** As it is now, or as it was at a revision. */
  get(key: string, revision?: number): Promise<Stored | undefined>;
}

export function connectEtcd(url: string): Etcd {
  const ask = async (path: string, body: object): Promise<Ranged> => {
    const reply = await fetch(new URL(path, url), { method: "POST", body: JSON.stringify(body) });
    if (!reply.ok) throw new Error(`${path}: ${reply.status} ${await reply.text()}`);
    // cast: etcd's own form.
    return (await reply.json()) as Ranged;
  };
  return {
    put: async (key, text) => {
      await ask("/v3/kv/put", { key: encoded(key), value: encoded(text) });
    },
    get: async (key, revision = 0) => {
      const { kvs = [] } = await ask("/v3/kv/range", { key: encoded(key), revision });
      const [found] = kvs;
      if (found === undefined) return undefined;
      return {
        text: Buffer.from(found.value, "base64").toString(),
        version: Number(found.version),
        revision: Number(found.mod_revision),
      };
    },
  };
}

interface Ranged {
  readonly kvs?: readonly { value: string; version: string; mod_revision: string }[];
}

function encoded(text: string): string {
  return Buffer.from(text).toString("base64");
}
