import type { Change, Path } from "./changes.ts";

/** How a change inside of an item is noticed: by what was noted down about it last time. */
export interface Likeness<T, C> {
  copyOf(item: T): C;
  isSame(item: T, copy: C): boolean;
}

/** The items of a list as they were kept. An item that is still there is the same object. */
export class KeptList<T extends object, C> {
  readonly #likeness: Likeness<T, C>;
  #items: T[];
  #copies: C[];

  constructor(likeness: Likeness<T, C>, list: readonly T[]) {
    this.#likeness = likeness;
    this.#items = [...list];
    this.#copies = list.map((item) => likeness.copyOf(item));
  }

  /** Adds what has changed since the last time. */
  collect(list: readonly T[], at: Path, changes: Change[]): void {
    if (!hasSameItems(this.#items, list)) this.#align(list, at, changes);
    for (let place = 0; place < list.length; place++) {
      const item = list[place];
      const copy = this.#copies[place];
      if (item === undefined || copy === undefined) continue;
      if (this.#likeness.isSame(item, copy)) continue;
      this.#copies[place] = this.#likeness.copyOf(item);
      changes.push({ at: [...at, place], set: item });
    }
  }

  #align(list: readonly T[], at: Path, changes: Change[]): void {
    const there = new Set(list);
    // From the end, so that the places of those before stay right.
    for (let place = this.#items.length - 1; place >= 0; place--) {
      const item = this.#items[place];
      if (item !== undefined && !there.has(item)) this.#cut(place, [], { at, changes });
    }
    for (const [place, item] of list.entries()) {
      if (this.#items[place] !== item) this.#cut(place, [item], { at, changes });
    }
    const left = this.#items.length - list.length;
    for (let more = 0; more < left; more++) this.#cut(list.length, [], { at, changes });
  }

  /** Puts an item at a place, or takes out the one that is there. */
  #cut(place: number, put: T[], { at, changes }: { at: Path; changes: Change[] }): void {
    const count = put.length === 0 ? 1 : 0;
    this.#items.splice(place, count, ...put);
    this.#copies.splice(place, count, ...put.map((item) => this.#likeness.copyOf(item)));
    changes.push({ at, cut: [place, count], put });
  }
}

function hasSameItems(left: readonly object[], right: readonly object[]): boolean {
  if (left.length !== right.length) return false;
  for (let place = 0; place < left.length; place++) {
    if (left[place] !== right[place]) return false;
  }
  return true;
}

/** The members of a record as they were kept, by name. */
export class KeptRecord<T extends object, C> {
  readonly #likeness: Likeness<T, C>;
  readonly #kept = new Map<string, { readonly item: T; readonly copy: C }>();

  constructor(likeness: Likeness<T, C>, record: Readonly<Record<string, T>>) {
    this.#likeness = likeness;
    for (const [name, item] of Object.entries(record)) this.#keep(name, item);
  }

  /** Looks at those names only; without any, at all that there are and were. */
  collect(
    record: Readonly<Record<string, T>>,
    { names, at }: { readonly names: Iterable<string> | undefined; readonly at: Path },
    changes: Change[],
  ): void {
    for (const name of names ?? new Set([...this.#kept.keys(), ...Object.keys(record)])) {
      const item = record[name];
      if (item === undefined) {
        if (this.#kept.delete(name)) changes.push({ at: [...at, name], remove: true });
      } else if (!this.#isKept(name, item)) {
        this.#keep(name, item);
        changes.push({ at: [...at, name], set: item });
      }
    }
  }

  #isKept(name: string, item: T): boolean {
    const kept = this.#kept.get(name);
    return kept?.item === item && this.#likeness.isSame(item, kept.copy);
  }

  #keep(name: string, item: T): void {
    this.#kept.set(name, { item, copy: this.#likeness.copyOf(item) });
  }
}

/** Small members of an object, as they were kept: numbers and texts, or the JSON of the others. */
export class KeptFields {
  readonly #skipped: ReadonlySet<string>;
  readonly #kept = new Map<string, unknown>();

  constructor(object: object, skipped: readonly string[]) {
    this.#skipped = new Set(skipped);
    this.collect(object, [], []);
  }

  collect(object: object, at: Path, changes: Change[]): void {
    for (const [name, value] of Object.entries(object)) {
      if (this.#skipped.has(name) || value === undefined) continue;
      const copy: unknown = typeof value === "object" ? JSON.stringify(value) : value;
      if (this.#kept.get(name) === copy) continue;
      this.#kept.set(name, copy);
      changes.push({ at: [...at, name], set: value });
    }
    for (const name of this.#kept.keys()) {
      if (Reflect.get(object, name) !== undefined) continue;
      this.#kept.delete(name);
      changes.push({ at: [...at, name], remove: true });
    }
  }
}
