import type { Entry } from "./store.ts";

/** Which entries of a bucket are meant, by their ids. */
export interface IdRange {
  readonly prefix?: string;
  readonly afterId?: string;
}

/**
 * The current entries of one kind: a map for lookup and a sorted array for lists, so that a list is
 * a slice. The array is made at the first list: loading sets ten thousand entries in the order
 * of their revisions, and keeping them sorted meanwhile would cost a move of the array for each.
 */
export class Bucket {
  readonly #byId = new Map<string, Entry>();
  #sorted: Entry[] | undefined;

  get(id: string): Entry | undefined {
    return this.#byId.get(id);
  }

  get size(): number {
    return this.#byId.size;
  }

  set(entry: Entry): void {
    const isNew = !this.#byId.has(entry.id);
    this.#byId.set(entry.id, entry);
    if (!this.#sorted) return;
    const at = indexAtOrAfter(this.#sorted, entry.id);
    if (isNew) this.#sorted.splice(at, 0, entry);
    else this.#sorted[at] = entry;
  }

  delete(id: string): void {
    if (!this.#byId.delete(id) || !this.#sorted) return;
    this.#sorted.splice(indexAtOrAfter(this.#sorted, id), 1);
  }

  /** All entries by id. The caller must not change the array, nor keep it beyond its turn. */
  sorted(): readonly Entry[] {
    this.#sorted ??= sortById([...this.#byId.values()]);
    return this.#sorted;
  }
}

/**
 * Sorts in place, in the order of UTF-16 code units, which for Kubernetes names is that of bytes.
 * No two entries have the same id.
 */
export function sortById(entries: Entry[]): Entry[] {
  return entries.sort((left, right) => (left.id < right.id ? -1 : 1));
}

/** Where the entries of a range begin and end (exclusive) in a sorted array. */
export function boundsOf(
  sorted: readonly Entry[],
  range: IdRange,
): { readonly start: number; readonly end: number } {
  const prefix = range.prefix ?? "";
  const first = indexAtOrAfter(sorted, prefix);
  const end =
    prefix === ""
      ? sorted.length
      : firstIndex(sorted, (id) => id > prefix && !id.startsWith(prefix));
  const { afterId } = range;
  if (afterId === undefined) return { start: first, end };
  const start = Math.max(
    first,
    firstIndex(sorted, (id) => id > afterId),
  );
  return { start, end: Math.max(start, end) };
}

function indexAtOrAfter(sorted: readonly Entry[], id: string): number {
  return firstIndex(sorted, (candidate) => candidate >= id);
}

/** The first index whose id satisfies a predicate that is false before and true from there on. */
function firstIndex(sorted: readonly Entry[], isThere: (id: string) => boolean): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const entry = sorted[middle];
    if (entry !== undefined && isThere(entry.id)) high = middle;
    else low = middle + 1;
  }
  return low;
}
