import assert from "node:assert/strict";
import type { Clock } from "../../kernel/clock.ts";
import type { Journal } from "../journal.ts";
import { openStore, type OpenStoreOptions } from "../open-store.ts";
import {
  type Change,
  type Decision,
  type Entry,
  type Key,
  type ListQuery,
  type Store,
  StoreError,
  type WriteResult,
} from "../store.ts";

/** One place where a journal lives, and what can happen to it. Made anew for every test. */
export interface Place {
  /** The journal of the next process. */
  open(): Promise<Journal>;
  /** The process dies without closing anything. */
  crash(): Promise<void>;
  /** From now on writes are refused, with nothing stored; undefined: all is well again. */
  setFault(fault: "full" | "failing" | undefined): Promise<void>;
  /** The next answer of the disk never comes. */
  loseAnswer(): Promise<void>;
  /** Damages the stored record of this revision. Only while no journal is open. */
  corrupt(revision: number): Promise<void>;
  /** How many records are stored. Only while no journal is open. */
  recordCount(): Promise<number>;
  /** Removes it. */
  remove(): Promise<void>;
}

/** What a store must do, by the sentence that says so. */
export type Laws = Readonly<Record<string, (bench: Bench) => Promise<void>>>;

/** One test's place, its clock, and the store that is open on it. */
export class Bench {
  readonly place: Place;
  nowMs = 1_700_000_000_000;
  #store: Store | undefined;

  constructor(place: Place) {
    this.place = place;
  }

  async open(options: Partial<OpenStoreOptions> = {}): Promise<Store> {
    const journal = await this.place.open();
    this.#store = await openStore({ journal, clock: this.#clock(), ...options });
    return this.#store;
  }

  async crash(): Promise<void> {
    this.#store = undefined;
    await this.place.crash();
  }

  async stop(): Promise<void> {
    await this.#store?.close();
  }

  async expectSame(before: Store, after: Store): Promise<void> {
    assert.deepEqual(list(after, {}), list(before, {}));
    assert.equal(after.revision(), before.revision());
    assert.equal(after.compactedRevision(), before.compactedRevision());
    const compacted = before.compactedRevision();
    assert.deepEqual(watch(after, compacted), watch(before, compacted));
  }

  #clock(): Clock {
    return {
      nowMs: () => this.nowMs,
      monotonicMs: () => this.nowMs,
      bootId: "test",
      after: () => () => {},
    };
  }
}

/** An id may name another bucket before a colon: "others:a". */
export function key(name: string): Key {
  const [id = "", bucket = "things"] = name.split(":").toReversed();
  return { bucket, id };
}

export function put(store: Store, name: string, value: string): Promise<WriteResult> {
  return store.write(key(name), putText(value));
}

export function remove(store: Store, id: string): Promise<WriteResult> {
  const encode = (revision: number): Uint8Array => bytes(`gone@${revision}`);
  return store.write(key(id), () => ({ do: "delete", encode }));
}

export function putText(value: string): () => Decision {
  return () => ({ do: "put", encode: (revision) => bytes(`${value}@${revision}`) });
}

export function list(
  store: Store,
  query: Partial<ListQuery>,
): { entries: readonly Entry[]; remaining: number } {
  const result = store.list({ bucket: "things", ...query });
  assert.ok(result.ok, "the list is in reach");
  return result;
}

export function ids(store: Store, query: Partial<ListQuery>): string[] {
  return list(store, query).entries.map((entry) => entry.id);
}

/** Collects what a watch delivers, as sentences. */
export function watch(
  store: Store,
  afterRevision: number,
  options: { bucket?: string; prefix?: string } = {},
): string[] {
  const seen: string[] = [];
  const deliver = (changes: readonly Change[]): void =>
    void seen.push(...changes.map(describeChange));
  const result = store.watch({ ...options, afterRevision, deliver });
  assert.ok(result.ok, "the watch is in reach");
  return seen;
}

function describeChange({ type, entry, previous }: Change): string {
  const was = previous ? ` was ${text(previous)}` : "";
  return `${type} ${entry.id} ${text(entry)}${was}`;
}

export function outcomeCode(outcome: PromiseSettledResult<unknown>): string {
  if (outcome.status === "fulfilled") return "ok";
  const reason: unknown = outcome.reason;
  return reason instanceof StoreError ? reason.code : String(reason);
}

function bytes(value: string): Uint8Array {
  return new TextEncoder().encode(value);
}

export function text(entry: Entry | undefined): string | undefined {
  return entry && new TextDecoder().decode(entry.value);
}
