import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { InformerCache, versionOf, type CacheChange } from "./informer-cache.ts";
import type { Widget } from "./testing.ts";

function widget(name: string, version: number, more: { uid?: string; size?: number } = {}): Widget {
  const { uid = name, size } = more;
  return {
    apiVersion: "berth.dev/v1",
    kind: "Widget",
    metadata: { name, namespace: "n", uid, resourceVersion: String(version) },
    ...(size === undefined ? {} : { size }),
  };
}

function shown(changes: readonly CacheChange<Widget>[]): string[] {
  return changes.map((change) => {
    const { metadata } = change.type === "deleted" ? change.old : change.object;
    return `${change.type} ${metadata.name}@${metadata.resourceVersion}`;
  });
}

test("tells what was added, updated and deleted", () => {
  const cache = new InformerCache<Widget>();
  assert.deepEqual(shown(cache.set(widget("a", 1))), ["added a@1"]);
  assert.deepEqual(shown(cache.set(widget("a", 2))), ["updated a@2"]);
  assert.deepEqual(shown(cache.delete(widget("a", 3))), ["deleted a@2"]);
  assert.deepEqual(shown(cache.delete(widget("a", 3))), []);
  assert.equal(cache.get("n/a"), undefined);
});

test("does not take what is older or the same", () => {
  const cache = new InformerCache<Widget>();
  cache.set(widget("a", 5));
  assert.deepEqual(cache.set(widget("a", 5, { size: 1 })), []);
  assert.deepEqual(cache.set(widget("a", 4)), []);
  assert.deepEqual(cache.delete(widget("a", 4)), []);
  assert.equal(cache.get("n/a")?.metadata.resourceVersion, "5");
});

test("compares revisions as numbers, however long", () => {
  assert.ok(versionOf(widget("a", 9)) < versionOf(widget("a", 10)));
  const cache = new InformerCache<Widget>();
  const long = { ...widget("a", 1), metadata: { ...widget("a", 1).metadata } };
  long.metadata.resourceVersion = "9007199254740993";
  cache.set(long);
  const older = { ...long, metadata: { ...long.metadata, resourceVersion: "9007199254740992" } };
  assert.deepEqual(cache.set(older), []);
});

test("another object of the same name is a deletion and an addition", () => {
  const cache = new InformerCache<Widget>();
  cache.set(widget("a", 1, { uid: "first" }));
  assert.deepEqual(shown(cache.set(widget("a", 5, { uid: "second" }))), [
    "deleted a@1",
    "added a@5",
  ]);
});

test("a complete list says what is gone", () => {
  const cache = new InformerCache<Widget>();
  for (const name of ["a", "b", "c"]) cache.set(widget(name, 1));
  const changes = cache.replace([widget("b", 1), widget("c", 2), widget("d", 3)]);
  assert.deepEqual(shown(changes), ["deleted a@1", "updated c@2", "added d@3"]);
  assert.deepEqual(
    cache.list().map(({ metadata }) => metadata.name),
    ["b", "c", "d"],
  );
});

test("finds objects by any of their values in an index", () => {
  const cache = new InformerCache<Widget>({ size: ({ size }) => (size ? [`${size}`, "any"] : []) });
  cache.set(widget("a", 1, { size: 1 }));
  cache.set(widget("b", 2, { size: 2 }));
  cache.set(widget("c", 3));
  const names = (value: string) => cache.find("size", value).map(({ metadata }) => metadata.name);
  assert.deepEqual(names("any"), ["a", "b"]);
  cache.set(widget("a", 4, { size: 2 }));
  assert.deepEqual(names("1"), []);
  assert.deepEqual(names("2"), ["b", "a"]);
  cache.delete(widget("b", 5));
  assert.deepEqual(names("2"), ["a"]);
  assert.throws(() => cache.find("colour", "red"), /there is an index colour/);
});

test("gives out objects that nobody can change", () => {
  const cache = new InformerCache<Widget>();
  cache.set(widget("a", 1));
  const object = cache.get("n/a");
  assert.ok(object && Object.isFrozen(object) && Object.isFrozen(object.metadata));
});

test("for every key the revision only grows, and the index says what the objects say", () => {
  const step = fc.record({
    act: fc.constantFrom("set", "delete", "replace"),
    name: fc.constantFrom("a", "b"),
    version: fc.nat(20),
    size: fc.integer({ min: 1, max: 2 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const cache = new InformerCache<Widget>({ size: ({ size }) => [String(size)] });
      for (const { act, name, version, size } of steps) {
        const before = new Map(cache.list().map((object) => [object.metadata.name, object]));
        const object = widget(name, version, { size });
        if (act === "set") cache.set(object);
        else if (act === "delete") cache.delete(object);
        else cache.replace([object]);
        for (const now of cache.list()) {
          const was = before.get(now.metadata.name);
          if (was) assert.ok(versionOf(now) >= versionOf(was));
          assert.ok(cache.find("size", String(now.size)).includes(now));
        }
        const indexed = ["1", "2"].flatMap((value) => cache.find("size", value));
        assert.equal(indexed.length, cache.list().length);
      }
    }),
  );
});
