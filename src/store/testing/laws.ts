import assert from "node:assert/strict";
import {
  ids,
  key,
  type Laws,
  list,
  outcomeCode,
  put,
  putText,
  remove,
  text,
  watch,
} from "./bench.ts";
import type { Change, Decision, Entry, WriteResult } from "../store.ts";

export const writing: Laws = {
  "acknowledges a write with the revision that its encoder was given": async (bench) => {
    const store = await bench.open();
    const result = await put(store, "a", "one");
    assert.equal(result.changed, true);
    assert.equal(text(result.entry), `one@${result.entry?.revision}`);
    assert.equal(store.revision(), result.entry?.revision);
    assert.deepEqual(store.get(key("a")), result.entry);
  },
  "shows a write neither to readers nor to watchers before it is durable": async (bench) => {
    const store = await bench.open();
    const seen = watch(store, 0);
    const pending = put(store, "a", "one");
    assert.equal(store.get(key("a")), undefined);
    assert.equal(store.revision(), 0);
    assert.equal(store.count("things"), 0);
    assert.deepEqual(seen, []);
    await pending;
    assert.deepEqual(seen, ["put a one@1"]);
  },
  "lets a second write of the same key decide on what the first one stored": async (bench) => {
    const store = await bench.open();
    const seen: (string | undefined)[] = [];
    const increment = (current: Entry | undefined): Decision => {
      seen.push(text(current)?.split("@")[0]);
      return putText(String(Number(seen.at(-1) ?? 0) + 1))();
    };
    await Promise.all(Array.from({ length: 20 }, () => store.write(key("counter"), increment)));
    assert.equal(text(store.get(key("counter"))), `20@${store.revision()}`);
    assert.deepEqual(seen.slice(0, 3), [undefined, "1", "2"]);
  },
  "rejects with what the decision threw, and goes on with the next write": async (bench) => {
    const store = await bench.open();
    const refuse = (): Decision => {
      throw new Error("stale");
    };
    const writes = [put(store, "a", "one"), store.write(key("a"), refuse), put(store, "a", "two")];
    const outcomes = await Promise.allSettled(writes);
    assert.deepEqual(
      outcomes.map((outcome) => outcome.status),
      ["fulfilled", "rejected", "fulfilled"],
    );
    assert.match(text(store.get(key("a"))) ?? "", /^two@/);
  },
  "rejects with what the encoder threw, and stores nothing": async (bench) => {
    const store = await bench.open();
    const encode = (): Uint8Array => {
      throw new Error("too large");
    };
    const write = store.write(key("a"), () => ({ do: "put", encode }));
    await assert.rejects(write, /too large/);
    assert.equal(store.get(key("a")), undefined);
    assert.match(text((await put(store, "a", "one")).entry) ?? "", /^one@/);
  },
  "changes nothing for keep, and answers with what is there": async (bench) => {
    const store = await bench.open();
    const keep = (): Decision => ({ do: "keep" });
    assert.deepEqual(await store.write(key("a"), keep), { entry: undefined, changed: false });
    const { entry } = await put(store, "a", "one");
    assert.deepEqual(await store.write(key("a"), keep), { entry, changed: false });
    assert.equal(store.revision(), entry?.revision);
  },
  "deletes with the last state under the revision of the deletion": async (bench) => {
    const store = await bench.open();
    await put(store, "a", "one");
    const seen = watch(store, store.revision());
    const { entry } = await remove(store, "a");
    assert.equal(text(entry), "gone@2");
    assert.equal(entry?.revision, 2);
    assert.equal(store.get(key("a")), undefined);
    assert.deepEqual(seen, ["delete a gone@2 was one@1"]);
  },
  "keeps what a decision writes to its own key in line": async (bench) => {
    const store = await bench.open();
    let inner: Promise<WriteResult> | undefined;
    await store.write(key("a"), () => {
      inner = store.write(key("a"), putText("inner"));
      return putText("outer")();
    });
    await inner;
    assert.equal(text(store.get(key("a"))), "inner@2");
  },
  "does not share its bytes with the buffer they came in": async (bench) => {
    const store = await bench.open();
    const buffer = Buffer.from("xxhelloxx");
    const encode = (): Uint8Array => buffer.subarray(2, 7);
    await store.write(key("a"), () => ({ do: "put", encode }));
    buffer.fill(0);
    assert.equal(text(store.get(key("a"))), "hello");
    assert.equal(store.get(key("a"))?.value.buffer.byteLength, 5);
  },
  "takes more writes at once than one batch holds, in the order in which they came": async (
    bench,
  ) => {
    const store = await bench.open();
    const seen = watch(store, 0);
    const writes = Array.from({ length: 2_500 }, (_, i) => put(store, `n${i}`, "one"));
    const revisions = (await Promise.all(writes)).map(({ entry }) => entry?.revision);
    assert.deepEqual(
      revisions,
      Array.from(writes, (_, i) => i + 1),
    );
    assert.deepEqual(
      seen,
      Array.from(writes, (_, i) => `put n${i} one@${i + 1}`),
    );
  },
  "refuses more writes than may wait": async (bench) => {
    const store = await bench.open({ limits: { pendingWrites: 2 } });
    const writes = ["a", "b", "c"].map((id) => put(store, id, "one"));
    const outcomes = await Promise.allSettled(writes);
    assert.deepEqual(outcomes.map(outcomeCode), ["ok", "ok", "Overloaded"]);
    await put(store, "c", "one");
  },
};

export const reading: Laws = {
  "lists the entries of a bucket in the order of their ids": async (bench) => {
    const store = await bench.open();
    for (const id of ["b", "a", "d", "c"]) await put(store, id, "one");
    await remove(store, "d");
    await put(store, "elsewhere:e", "other");
    assert.deepEqual(ids(store, {}), ["a", "b", "c"]);
    assert.equal(store.count("things"), 3);
    assert.equal(store.count("nothing"), 0);
  },
  "lists by prefix, page by page, and says how many remain": async (bench) => {
    const store = await bench.open();
    for (const id of ["a-b/1", "a/1", "a/2", "a/3", "a0/1", "b/1"]) await put(store, id, "one");
    assert.deepEqual(ids(store, { prefix: "a/" }), ["a/1", "a/2", "a/3"]);
    const page = list(store, { prefix: "a/", limit: 2 });
    assert.deepEqual([page.entries.length, page.remaining], [2, 1]);
    const rest = list(store, { prefix: "a/", afterId: "a/2", limit: 2 });
    assert.deepEqual([rest.entries.length, rest.remaining], [1, 0]);
    assert.deepEqual(ids(store, { prefix: "a/", afterId: "z" }), []);
    assert.deepEqual(ids(store, { afterId: "a0/1" }), ["b/1"]);
  },
  "lists an older revision as it was while writes go on": async (bench) => {
    const store = await bench.open();
    for (const id of ["a", "b", "c", "d"]) await put(store, id, "old");
    const atRevision = store.revision();
    const before = list(store, {});
    await put(store, "b", "new");
    await put(store, "b", "newer");
    await remove(store, "c");
    await put(store, "c", "again");
    await remove(store, "a");
    await put(store, "bb", "added");
    assert.deepEqual(list(store, { atRevision }), before);
    assert.deepEqual(ids(store, { atRevision, afterId: "b", limit: 1 }), ["c"]);
    assert.deepEqual(ids(store, {}), ["b", "bb", "c", "d"]);
  },
  "says when a revision is still to come": async (bench) => {
    const store = await bench.open();
    assert.deepEqual(store.list({ bucket: "things", atRevision: 1 }), { ok: false, why: "future" });
    const deliver = (): void => {};
    assert.deepEqual(store.watch({ afterRevision: 1, deliver }), { ok: false, why: "future" });
  },
};

export const watching: Laws = {
  "replays what came after a revision and goes on without a gap": async (bench) => {
    const store = await bench.open();
    await put(store, "a", "one");
    await put(store, "b", "one");
    const under = put(store, "c", "one");
    const seen = watch(store, 1);
    assert.deepEqual(seen, ["put b one@2"]);
    await under;
    await put(store, "a", "two");
    assert.deepEqual(seen, ["put b one@2", "put c one@3", "put a two@4 was one@1"]);
  },
  "delivers one bucket, one prefix, or everything": async (bench) => {
    const store = await bench.open();
    const all = watch(store, 0);
    const things = watch(store, 0, { bucket: "things" });
    const some = watch(store, 0, { bucket: "things", prefix: "x/" });
    await Promise.all([
      put(store, "x/1", "one"),
      put(store, "others:x/2", "one"),
      put(store, "y/1", "one"),
    ]);
    assert.deepEqual(all, ["put x/1 one@1", "put x/2 one@2", "put y/1 one@3"]);
    assert.deepEqual(things, ["put x/1 one@1", "put y/1 one@3"]);
    assert.deepEqual(some, ["put x/1 one@1"]);
  },
  "delivers nothing more once stopped, also from within a delivery": async (bench) => {
    const store = await bench.open();
    const seen: string[] = [];
    const stops: (() => void)[] = [];
    for (const who of ["first", "second"]) {
      const result = store.watch({
        afterRevision: 0,
        deliver: () => {
          seen.push(who);
          for (const stop of stops) stop();
        },
      });
      if (result.ok) stops.push(result.stop);
    }
    await put(store, "a", "one");
    await put(store, "a", "two");
    assert.deepEqual(seen, ["first"]);
  },
  "tells a watcher that starts within a delivery everything once": async (bench) => {
    const store = await bench.open();
    const nested: string[][] = [];
    store.watch({
      bucket: "things",
      afterRevision: 0,
      deliver: () => nested.push(watch(store, 0)),
    });
    await Promise.all([put(store, "a", "one"), put(store, "b", "one")]);
    await put(store, "c", "one");
    assert.deepEqual(nested[0], ["put a one@1", "put b one@2", "put c one@3"]);
  },
  "lets a watcher write, and tells it of that too": async (bench) => {
    const store = await bench.open();
    const writes: Promise<WriteResult>[] = [];
    const deliver = (changes: readonly Change[]): void => {
      if (changes.some((change) => change.entry.id === "a")) writes.push(put(store, "b", "echo"));
    };
    store.watch({ afterRevision: 0, deliver });
    const seen = watch(store, 0);
    await put(store, "a", "one");
    await Promise.all(writes);
    assert.deepEqual(seen, ["put a one@1", "put b echo@2"]);
  },
  "tells watchers when it closes": async (bench) => {
    const store = await bench.open();
    let closed = 0;
    const options = { afterRevision: 0, deliver: () => {}, closed: () => closed++ };
    store.watch(options);
    await store.close();
    assert.equal(closed, 1);
    store.watch(options);
    assert.equal(closed, 2);
  },
};
