import { objectKey, type KubeObject } from "../kernel/object.ts";

/** How objects are found by something else than their key. One object may have several values. */
export type Indexes<Read> = Readonly<Record<string, (object: Read) => readonly string[]>>;

/** What happened to one key. An object that was replaced by another of its name is two changes. */
export type CacheChange<Read> =
  | { readonly type: "added"; readonly object: Read }
  | { readonly type: "updated"; readonly object: Read; readonly old: Read }
  | { readonly type: "deleted"; readonly old: Read };

/**
 * Objects as they were last seen. What it holds for a key only ever gets newer: an older version of
 * an object, from a server that lags behind, is not taken. Objects are frozen as they come in.
 */
export class InformerCache<Read extends KubeObject> {
  readonly #indexes: Indexes<Read>;
  readonly #objects = new Map<string, Read>();
  /** Index, value, keys. */
  readonly #found = new Map<string, Map<string, Set<string>>>();

  constructor(indexes: Indexes<Read> = {}) {
    this.#indexes = indexes;
    for (const name of Object.keys(indexes)) this.#found.set(name, new Map());
  }

  get(key: string): Read | undefined {
    return this.#objects.get(key);
  }

  list(): Read[] {
    return [...this.#objects.values()];
  }

  /** The objects with this value in an index that was declared. */
  find(index: string, value: string): Read[] {
    const values = this.#found.get(index);
    if (values === undefined) throw new Error(`assertion failed: there is an index ${index}`);
    const keys = [...(values.get(value) ?? [])];
    return keys.map((key) => this.#objects.get(key)).filter((object) => object !== undefined);
  }

  /** Takes an object as it is now. */
  set(object: Read): CacheChange<Read>[] {
    const key = objectKey(object.metadata);
    const old = this.#objects.get(key);
    if (old !== undefined && !isNewer(object, old)) return [];
    deepFreeze(object);
    this.#remove(key, old);
    this.#objects.set(key, object);
    for (const [values, value] of this.#placesOf(object)) {
      values.set(value, (values.get(value) ?? new Set()).add(key));
    }
    if (old === undefined) return [{ type: "added", object }];
    if (old.metadata.uid === object.metadata.uid) return [{ type: "updated", object, old }];
    return [
      { type: "deleted", old },
      { type: "added", object },
    ];
  }

  /** Takes the last state of an object that is gone; ignored if a newer one is there. */
  delete(object: KubeObject): CacheChange<Read>[] {
    const key = objectKey(object.metadata);
    const old = this.#objects.get(key);
    if (old === undefined || versionOf(object) < versionOf(old)) return [];
    this.#remove(key, old);
    return [{ type: "deleted", old }];
  }

  /** Takes a complete list: what it lacks is gone. */
  replace(objects: readonly Read[]): CacheChange<Read>[] {
    const listed = new Set(objects.map((object) => objectKey(object.metadata)));
    const gone = [...this.#objects].filter(([key]) => !listed.has(key));
    const deletions = gone.map(([key, old]): CacheChange<Read> => {
      this.#remove(key, old);
      return { type: "deleted", old };
    });
    return [...deletions, ...objects.flatMap((object) => this.set(object))];
  }

  #remove(key: string, old: Read | undefined): void {
    if (old === undefined) return;
    this.#objects.delete(key);
    for (const [values, value] of this.#placesOf(old)) {
      const keys = values.get(value);
      keys?.delete(key);
      if (keys?.size === 0) values.delete(value);
    }
  }

  *#placesOf(object: Read): Generator<[values: Map<string, Set<string>>, value: string]> {
    for (const [name, valuesOf] of Object.entries(this.#indexes)) {
      const values = this.#found.get(name);
      if (values === undefined) continue;
      for (const value of valuesOf(object)) yield [values, value];
    }
  }
}

/** The revision as a number, which in both homes it is. */
export function versionOf(object: { metadata: { resourceVersion?: string } }): bigint {
  const text = object.metadata.resourceVersion ?? "";
  return /^[0-9]{1,20}$/.test(text) ? BigInt(text) : 0n;
}

function isNewer(object: KubeObject, old: KubeObject): boolean {
  return versionOf(object) > versionOf(old);
}

function deepFreeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const member of Object.values(value)) deepFreeze(member);
}
