import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import type { Clock } from "../kernel/clock.ts";
import { createMemoryDisk, type DiskFault } from "./memory-journal.ts";
import { openStore } from "./open-store.ts";
import type { Change, Decision, Entry, Key, Store, StoreError, WriteResult } from "./store.ts";

/**
 * The store against a model so simple that it is right: the list of everything that watchers were
 * told. Random operations, among them crashes with torn writes, full disks and lost answers.
 */
test("a store never loses, invents, reorders or half-shows a write", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 10, maxLength: 80 }), async (operations) => {
      const world = new World();
      await world.start(0);
      for (const step of operations) {
        await world.perform(step);
        world.check();
      }
      await world.settle();
      world.check();
      await world.perform({ do: "crash", tear: 0 });
      world.check();
    }),
    { numRuns: 300 },
  );
});

type Operation =
  | { do: "write"; key: number; bucket: number; how: "put" | "delete" | "keep" | "throw" }
  | { do: "flush" }
  | { do: "crash"; tear: number }
  | { do: "fault"; fault: DiskFault | undefined }
  | { do: "compact"; passedMs: number }
  | { do: "watch"; bucket: number | undefined; back: number };

const operation: fc.Arbitrary<Operation> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant("write" as const),
      key: fc.nat(3),
      bucket: fc.nat(1),
      how: fc.constantFrom("put" as const, "put", "put", "delete", "keep", "throw"),
    }),
  },
  { weight: 6, arbitrary: fc.constant<Operation>({ do: "flush" }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("crash" as const),
      tear: fc.constantFrom(0, 0.1, 0.9, 1),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("fault" as const),
      fault: fc.constantFrom(undefined, undefined, "full", "failing", "lost", "hidden"),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("compact" as const), passedMs: fc.nat(1_500) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant("watch" as const),
      bucket: fc.option(fc.nat(1), { nil: undefined }),
      back: fc.nat(10),
    }),
  },
);

/** A change as plain data. */
interface Told {
  readonly revision: number;
  readonly bucket: string;
  readonly id: string;
  readonly type: string;
  readonly text: string;
}

/** A client that watches, and after a crash goes on from what it saw last. */
interface Follower {
  readonly bucket: string | undefined;
  /** What it must have been told is everything after this. */
  since: number;
  told: Told[];
}

class World {
  /** Everything durable that anybody was told, in order. */
  #durable: Told[] = [];
  /** Texts of writes that have no answer, or an unknown one: they may turn up after a crash. */
  readonly #open = new Map<string, Told["type"]>();
  /** Of those, the ones that were told so: they may turn up although nothing was torn. */
  readonly #unknown = new Set<string>();
  /** Texts of writes that were refused. They must never turn up. */
  readonly #refused = new Set<string>();
  /** Per text, what its write decided on. */
  readonly #decidedOn = new Map<string, string | undefined>();
  readonly #followers: Follower[] = [];
  /** The first broken expectation of a callback, where throwing would be lost. */
  #failure: Error | undefined;
  #nowMs = 1_000_000;
  #writes = 0;
  #unanswered = 0;
  #pendingFlush: (() => void) | undefined;
  readonly #disk = createMemoryDisk({
    flush: (complete) => {
      this.#pendingFlush = complete;
    },
  });
  #store: Store | undefined;

  async start(tear: number): Promise<void> {
    const journal = this.#disk.open();
    const store = await openStore({
      journal,
      clock: this.#clock(),
      limits: { historyMs: 1_000, historyChanges: 12 },
    });
    this.#store = store;
    this.#takeOver(store, tear);
    this.#record(store);
    for (const follower of this.#followers) this.#follow(store, follower);
  }

  async perform(step: Operation): Promise<void> {
    switch (step.do) {
      case "write":
        this.#write({ bucket: `b${step.bucket}`, id: `k${step.key}` }, step.how);
        break;
      case "flush":
        this.#flush();
        break;
      case "crash":
        return this.#crash(step.tear);
      case "fault":
        this.#disk.setFault(step.fault);
        break;
      case "compact":
        this.#nowMs += step.passedMs;
        // A faulty disk may refuse it; that it then changed nothing is checked like the rest.
        this.#living()
          .compact(this.#nowMs)
          .catch(() => undefined);
        break;
      case "watch":
        this.#watch(step);
    }
    await turn();
  }

  /** Once the disk is well, every write gets its answer. */
  async settle(): Promise<void> {
    this.#disk.setFault(undefined);
    for (let i = 0; i <= this.#writes; i++) await this.perform({ do: "flush" });
    assert.equal(this.#unanswered, 0);
  }

  /** What must hold at every moment. */
  check(): void {
    if (this.#failure) throw this.#failure;
    const store = this.#living();
    const revisions = this.#durable.map((told) => told.revision);
    assert.deepEqual(
      revisions,
      [...new Set(revisions)].sort((a, b) => a - b),
    );
    assert.equal(store.revision(), Math.max(store.compactedRevision(), revisions.at(-1) ?? 0));
    for (const { text } of this.#durable) assert.ok(!this.#refused.has(text), `${text} came back`);
    for (const bucket of ["b0", "b1"]) this.#checkLists(store, bucket);
    for (const follower of this.#followers) {
      assert.deepEqual(follower.told, this.#toldAfter(follower.since, follower.bucket));
    }
  }

  #checkLists(store: Store, bucket: string): void {
    for (let at = store.compactedRevision(); at <= store.revision(); at++) {
      const result = store.list({ bucket, atRevision: at });
      assert.ok(result.ok);
      assert.deepEqual(result.entries.map(entryText), [...this.#stateAt(bucket, at).values()]);
    }
    assert.equal(store.count(bucket), this.#stateAt(bucket, store.revision()).size);
  }

  /** Everything told is still there; what is new must be whole, and must have been asked for. */
  #takeOver(store: Store, tear: number): void {
    const known = this.#durable.at(-1)?.revision ?? 0;
    assert.ok(store.revision() >= known, "an acknowledged revision is gone");
    if (store.compactedRevision() > known) return assert.fail("compacted what nobody was told");
    const result = store.watch({
      afterRevision: known,
      deliver: (changes) => {
        for (const told of changes.map(toTold)) this.#expect(() => this.#expectWhole(told, tear));
        this.#durable.push(...changes.map(toTold));
      },
    });
    assert.ok(result.ok);
    result.stop();
    for (const text of this.#open.keys()) this.#refused.add(text);
    for (const { text } of this.#durable) this.#refused.delete(text);
    this.#open.clear();
  }

  #expectWhole(told: Told, tear: number): void {
    this.#expectAskedFor(told);
    assert.ok(tear === 1 || this.#unknown.has(told.text), `${told.text} came of a torn write`);
  }

  #expectAskedFor(told: Told): void {
    assert.equal(this.#open.get(told.text), told.type, `${told.text} was never asked for`);
  }

  #record(store: Store): void {
    const deliver = (changes: readonly Change[]): void => {
      for (const change of changes) this.#expect(() => this.#recordChange(change));
    };
    assert.ok(store.watch({ afterRevision: store.revision(), deliver }).ok);
  }

  #recordChange(change: Change): void {
    const told = toTold(change);
    const previous = this.#stateAt(change.bucket, Infinity).get(change.entry.id);
    assert.equal(change.previous && entryText(change.previous), previous);
    assert.equal(this.#decidedOn.get(told.text), previous, "decided on something else");
    this.#expectAskedFor(told);
    this.#durable.push(told);
  }

  #write(key: Key, how: "put" | "delete" | "keep" | "throw"): void {
    const text = `w${++this.#writes}`;
    const decide = (current: Entry | undefined): Decision => {
      const decidedOn = current && entryText(current);
      const durable = this.#stateAt(key.bucket, Infinity).get(key.id);
      this.#expect(() => assert.equal(decidedOn, durable));
      this.#decidedOn.set(text, decidedOn);
      if (how === "throw") throw new Error("refused");
      if (how === "keep" || (how === "delete" && !current)) return { do: "keep" };
      this.#open.set(text, how);
      return { do: how, encode: () => new TextEncoder().encode(text) };
    };
    this.#unanswered++;
    this.#living()
      .write(key, decide)
      .then(
        (result) => this.#expect(() => this.#acknowledged(text, result)),
        (error: Error) => this.#expect(() => this.#rejected(text, error)),
      );
  }

  #acknowledged(text: string, { entry, changed }: WriteResult): void {
    this.#unanswered--;
    if (!changed) return assert.equal(entry && entryText(entry), this.#decidedOn.get(text));
    const told = this.#durable.find((candidate) => candidate.text === text);
    assert.equal(told?.revision, entry?.revision, "acknowledged before it was delivered");
    this.#open.delete(text);
  }

  #expect(check: () => void): void {
    try {
      check();
    } catch (error) {
      this.#failure ??= error instanceof Error ? error : new Error(String(error));
    }
  }

  #rejected(text: string, error: Error): void {
    this.#unanswered--;
    if (error.message === "refused") return;
    const { code } = error as StoreError;
    assert.ok(["StorageFull", "StorageFailed", "OutcomeUnknown"].includes(code), String(error));
    if (code === "OutcomeUnknown") {
      this.#unknown.add(text);
      return;
    }
    this.#open.delete(text);
    this.#refused.add(text);
  }

  #watch({ bucket, back }: { bucket: number | undefined; back: number }): void {
    const store = this.#living();
    const follower: Follower = {
      bucket: bucket === undefined ? undefined : `b${bucket}`,
      since: Math.max(0, store.revision() - back),
      told: [],
    };
    this.#followers.push(follower);
    this.#follow(store, follower);
  }

  #follow(store: Store, follower: Follower): void {
    const deliver = (changes: readonly Change[]): void => {
      follower.told.push(...changes.map(toTold));
    };
    const afterRevision = Math.max(follower.since, follower.told.at(-1)?.revision ?? 0);
    const { bucket } = follower;
    const options = { ...(bucket ? { bucket } : {}), deliver };
    if (store.watch({ ...options, afterRevision }).ok) return;
    assert.ok(afterRevision < store.compactedRevision(), "refused what is still there");
    // It lists anew and goes on from there.
    follower.since = store.revision();
    follower.told = [];
    assert.ok(store.watch({ ...options, afterRevision: follower.since }).ok);
  }

  #flush(): void {
    const complete = this.#pendingFlush;
    this.#pendingFlush = undefined;
    complete?.();
  }

  async #crash(tear: number): Promise<void> {
    this.#disk.crash({ tear });
    this.#disk.setFault(undefined);
    this.#pendingFlush = undefined;
    this.#unanswered = 0;
    await this.start(tear);
  }

  #toldAfter(revision: number, bucket: string | undefined): Told[] {
    return this.#durable.filter(
      (told) => told.revision > revision && (bucket === undefined || told.bucket === bucket),
    );
  }

  #stateAt(bucket: string, revision: number): Map<string, string> {
    const state = new Map<string, string>();
    for (const told of this.#durable) {
      if (told.bucket !== bucket || told.revision > revision) continue;
      if (told.type === "put") state.set(told.id, told.text);
      else state.delete(told.id);
    }
    return new Map([...state].sort(([left], [right]) => (left < right ? -1 : 1)));
  }

  #living(): Store {
    assert.ok(this.#store);
    return this.#store;
  }

  #clock(): Clock {
    return {
      nowMs: () => this.#nowMs,
      monotonicMs: () => this.#nowMs,
      bootId: "test",
      after: () => () => {},
    };
  }
}

function toTold({ type, bucket, entry }: Change): Told {
  return { revision: entry.revision, bucket, id: entry.id, type, text: entryText(entry) };
}

function entryText(entry: Entry): string {
  return new TextDecoder().decode(entry.value);
}
