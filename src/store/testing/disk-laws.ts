import assert from "node:assert/strict";
import { ids, key, type Laws, outcomeCode, put, remove, text, watch } from "./bench.ts";
import type { Store } from "../store.ts";

export const lasting: Laws = {
  "has after closing and opening what it had before": async (bench) => {
    const store = await bench.open();
    await fill(store);
    await store.close();
    await bench.expectSame(store, await bench.open());
  },
  "has after a crash every acknowledged write": async (bench) => {
    const store = await bench.open();
    await fill(store);
    await bench.crash();
    await bench.expectSame(store, await bench.open());
  },
  "finishes the writes under way before it closes, and refuses later ones": async (bench) => {
    const store = await bench.open();
    const writes = [put(store, "a", "one"), put(store, "a", "two"), put(store, "b", "one")];
    const closed = store.close();
    await assert.rejects(put(store, "c", "late"), { code: "Closed" });
    await Promise.all(writes);
    await closed;
    assert.deepEqual(ids(await bench.open(), {}), ["a", "b"]);
  },
  "fails the writes that a full disk refuses, and only those": async (bench) => {
    const store = await bench.open();
    const seen = watch(store, 0);
    await put(store, "a", "one");
    await bench.place.setFault("full");
    // Large enough to need room that is not there.
    const large = "x".repeat(10_000);
    const writes = ["a", "b", "a"].map((id) => put(store, id, large));
    const outcomes = await Promise.allSettled(writes);
    assert.deepEqual(outcomes.map(outcomeCode), ["StorageFull", "StorageFull", "StorageFull"]);
    assert.deepEqual([text(store.get(key("a"))), store.revision()], ["one@1", 1]);
    await bench.place.setFault(undefined);
    const { entry } = await put(store, "a", "four");
    assert.ok((entry?.revision ?? 0) > 1);
    assert.deepEqual(seen, ["put a one@1", `put a ${text(entry)} was one@1`]);
    await store.close();
    await bench.expectSame(store, await bench.open());
  },
  "fails a write that the disk refuses otherwise, and takes the next": async (bench) => {
    const store = await bench.open();
    await bench.place.setFault("failing");
    await assert.rejects(put(store, "a", "one"), { code: "StorageFailed" });
    await bench.place.setFault(undefined);
    await put(store, "a", "two");
    assert.match(text(store.get(key("a"))) ?? "", /^two@/);
  },
  "stops taking writes when the outcome of one is unknown": async (bench) => {
    const failures: string[] = [];
    const store = await bench.open({ onFailed: (error) => failures.push(error.code) });
    await put(store, "a", "one");
    await bench.place.loseAnswer();
    const writes = [put(store, "a", "two"), put(store, "a", "three")];
    assert.deepEqual((await Promise.allSettled(writes)).map(outcomeCode), [
      "OutcomeUnknown",
      "StorageFailed",
    ]);
    await assert.rejects(put(store, "b", "one"), { code: "StorageFailed" });
    assert.deepEqual(failures, ["OutcomeUnknown"]);
    assert.equal(text(store.get(key("a"))), "one@1");
    await store.close();
    const after = text((await bench.open()).get(key("a"))) ?? "";
    assert.match(after, /^(one|two)@/);
  },
  "forgets changes by age, with their records, and no more than that": async (bench) => {
    const store = await bench.open({ limits: { historyMs: 1_000 } });
    await put(store, "a", "one");
    await put(store, "a", "two");
    await put(store, "b", "one");
    await remove(store, "b");
    bench.nowMs += 900;
    await put(store, "a", "three");
    bench.nowMs += 200;
    await store.compact(bench.nowMs);
    assert.equal(store.compactedRevision(), 4);
    assert.deepEqual(watch(store, 4), ["put a three@5 was two@2"]);
    assert.deepEqual(ids(store, { atRevision: 4 }), ["a"]);
    const compacted = { ok: false, why: "compacted" };
    assert.deepEqual(store.list({ bucket: "things", atRevision: 3 }), compacted);
    assert.deepEqual(store.watch({ afterRevision: 3, deliver: () => {} }), compacted);
    await store.close();
    assert.equal(await bench.place.recordCount(), 2);
    await bench.expectSame(store, await bench.open());
  },
  "keeps its newest revision when compaction removes that record": async (bench) => {
    const store = await bench.open({ limits: { historyMs: 0 } });
    await put(store, "a", "one");
    await remove(store, "a");
    bench.nowMs += 1;
    await store.compact(bench.nowMs);
    await bench.crash();
    assert.equal(await bench.place.recordCount(), 0);
    const reopened = await bench.open();
    assert.deepEqual([reopened.revision(), reopened.compactedRevision()], [2, 2]);
    assert.equal((await put(reopened, "a", "again")).entry?.revision, 3);
  },
  "bounds its history by number on its own": async (bench) => {
    const store = await bench.open({ limits: { historyChanges: 10 } });
    for (let i = 0; i < 50; i++) await put(store, "a", String(i));
    await store.close();
    assert.ok((await bench.place.recordCount()) <= 14);
    assert.ok(store.compactedRevision() >= 36);
  },
  "bounds its history by size on its own": async (bench) => {
    const store = await bench.open({ limits: { historyBytes: 1_000 } });
    for (let i = 0; i < 50; i++) await put(store, "a", "x".repeat(100));
    await store.close();
    assert.ok((await bench.place.recordCount()) <= 14);
    assert.ok(store.compactedRevision() < 50);
  },
  "stays whole when compaction is refused": async (bench) => {
    const store = await bench.open({ limits: { historyMs: 0 } });
    await put(store, "a", "one");
    await put(store, "a", "two");
    bench.nowMs += 1;
    await bench.place.setFault("failing");
    await assert.rejects(store.compact(bench.nowMs), { code: "StorageFailed" });
    assert.equal(store.compactedRevision(), 0);
    assert.deepEqual(watch(store, 0), ["put a one@1", "put a two@2 was one@1"]);
    await bench.place.setFault(undefined);
    await store.compact(bench.nowMs);
    assert.equal(store.compactedRevision(), 2);
  },
  "refuses to open what is damaged, and names the object": async (bench) => {
    const store = await bench.open();
    await put(store, "default/a", "one");
    await put(store, "default/b", "one");
    await store.close();
    await bench.place.corrupt(1);
    await assert.rejects(bench.open(), { code: "Corrupt", message: /things default\/a/ });
  },
};

async function fill(store: Store): Promise<void> {
  for (const id of ["a", "b", "c"]) await put(store, id, "one");
  await put(store, "b", "two");
  await remove(store, "c");
  await Promise.all(["d", "e", "f"].map((id) => put(store, id, "together")));
}
