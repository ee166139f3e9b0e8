import type { Informer } from "../../client/index.ts";
import { objectKey, type KubeObject } from "../../kernel/object.ts";

/**
 * Objects as an informer shows them, and those that this process wrote itself and that have not
 * come back yet. So a controller sees its own writes at once; what others write it sees when the
 * informer does, and its next write of an old copy is refused by the server.
 */
export class WrittenObjects<Read extends KubeObject> {
  readonly #informer: Pick<Informer<Read>, "get" | "list" | "byIndex">;
  readonly #written = new Map<string, Read>();

  constructor(informer: Pick<Informer<Read>, "get" | "list" | "byIndex">) {
    this.#informer = informer;
  }

  get(key: string): Read | undefined {
    return this.#newest(key, this.#informer.get(key));
  }

  list(): Read[] {
    return this.#newestOf(this.#informer.list());
  }

  byIndex(index: string, value: string): Read[] {
    return this.#newestOf(this.#informer.byIndex(index, value));
  }

  /** Remembers what a write of ours was answered with. */
  note(object: Read): Read {
    this.#written.set(objectKey(object.metadata), object);
    return object;
  }

  forget(key: string): void {
    this.#written.delete(key);
  }

  forgetAll(): void {
    this.#written.clear();
  }

  #newestOf(seen: readonly Read[]): Read[] {
    return seen.map((object) => this.#newest(objectKey(object.metadata), object) ?? object);
  }

  #newest(key: string, seen: Read | undefined): Read | undefined {
    const written = this.#written.get(key);
    if (written === undefined) return seen;
    if (seen !== undefined && versionOf(seen) < versionOf(written)) return written;
    // The informer has caught up, or the object is gone: its word counts from now on.
    this.#written.delete(key);
    return seen;
  }
}

/** In both homes a revision is a number. */
export function versionOf({ metadata }: KubeObject): bigint {
  const text = metadata.resourceVersion ?? "";
  return /^[0-9]{1,20}$/.test(text) ? BigInt(text) : 0n;
}
