import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { Json, JsonObject } from "./json.ts";
import { applyMergePatch } from "./merge-patch.ts";
import { ApiError } from "./status.ts";
import { applyStrategicMergePatch } from "./strategic-merge.ts";

const mergeKeys = {
  "metadata.ownerReferences": "uid",
  "metadata.finalizers": "",
  secrets: "name",
  "secrets.keys": "name",
};

interface Case {
  reason: string;
  target: JsonObject;
  patch: JsonObject;
  result: JsonObject;
}

const named = (...names: string[]): JsonObject[] => names.map((name) => ({ name }));

const cases: Case[] = [
  {
    reason: "merges maps and removes what is null",
    target: { metadata: { labels: { a: "1", b: "2" } }, data: { x: "1" } },
    patch: { metadata: { labels: { a: null, c: "3" } }, data: null },
    result: { metadata: { labels: { b: "2", c: "3" } } },
  },
  {
    reason: "replaces a list that the table does not name",
    target: { list: [1, 2], things: named("a") },
    patch: { list: [3], things: named("b") },
    result: { list: [3], things: named("b") },
  },
  {
    reason: "merges a list by its key, in the order of the live list and then of the patch",
    target: {
      secrets: [
        { name: "a", x: 1 },
        { name: "b", x: 1 },
      ],
    },
    patch: { secrets: [{ name: "b", y: 2 }, { name: "c" }] },
    result: { secrets: [{ name: "a", x: 1 }, { name: "b", x: 1, y: 2 }, { name: "c" }] },
  },
  {
    reason: "merges lists inside the elements of a merged list",
    target: { secrets: [{ name: "a", keys: [{ name: "k", v: 1 }] }] },
    patch: { secrets: [{ name: "a", keys: [{ name: "k", w: 2 }, { name: "l" }] }] },
    result: { secrets: [{ name: "a", keys: [{ name: "k", v: 1, w: 2 }, { name: "l" }] }] },
  },
  {
    reason: "adds to a set of scalars without repeating",
    target: { metadata: { finalizers: ["a", "b"] } },
    patch: { metadata: { finalizers: ["b", "c"] } },
    result: { metadata: { finalizers: ["a", "b", "c"] } },
  },
  {
    reason: "removes from a set of scalars",
    target: { metadata: { finalizers: ["a", "b", "c"] } },
    patch: { metadata: { "$deleteFromPrimitiveList/finalizers": ["a", "c", "z"] } },
    result: { metadata: { finalizers: ["b"] } },
  },
  {
    reason: "removes, adds and orders in one patch, as kubectl sends it",
    target: { metadata: { finalizers: ["a", "b", "server"] } },
    patch: {
      metadata: {
        "$deleteFromPrimitiveList/finalizers": ["a"],
        "$setElementOrder/finalizers": ["c", "b"],
        finalizers: ["c"],
      },
    },
    result: { metadata: { finalizers: ["c", "b", "server"] } },
  },
  {
    reason: "deletes an element by its key",
    target: { secrets: named("a", "b", "c") },
    patch: { secrets: [{ $patch: "delete", name: "b" }] },
    result: { secrets: named("a", "c") },
  },
  {
    reason: "replaces a merged list when an element says so",
    target: { secrets: named("a", "b") },
    patch: { secrets: [{ name: "c" }, { $patch: "replace" }] },
    result: { secrets: named("c") },
  },
  {
    reason: "replaces a map when it says so",
    target: { metadata: { labels: { a: "1", b: "2" } } },
    patch: { metadata: { labels: { $patch: "replace", c: "3" } } },
    result: { metadata: { labels: { c: "3" } } },
  },
  {
    reason: "empties a map that is to be deleted",
    target: { metadata: { labels: { a: "1" } } },
    patch: { metadata: { labels: { $patch: "delete" } } },
    result: { metadata: { labels: {} } },
  },
  {
    reason: "takes merge for what it does anyway",
    target: { secrets: [{ name: "a", x: 1 }], data: { a: 1 } },
    patch: { secrets: [{ $patch: "merge", name: "a", y: 2 }], data: { $patch: "merge", b: 2 } },
    result: { secrets: [{ name: "a", x: 1, y: 2 }], data: { a: 1, b: 2 } },
  },
  {
    reason: "keeps only the members that retainKeys names",
    target: { strategy: { type: "Rolling", rolling: { surge: 1 } } },
    patch: { strategy: { $retainKeys: ["type"], type: "Recreate" } },
    result: { strategy: { type: "Recreate" } },
  },
  {
    reason: "orders a merged list, and keeps what only the server has before what followed it",
    target: { secrets: named("a", "server", "b", "c") },
    patch: { "$setElementOrder/secrets": named("c", "b", "a") },
    result: { secrets: named("server", "c", "b", "a") },
  },
  {
    reason: "interleaves what only the server has by the live order",
    target: { secrets: named("s1", "a", "s2", "b", "s3") },
    patch: { "$setElementOrder/secrets": named("a", "n", "b"), secrets: named("n") },
    result: { secrets: named("s1", "a", "n", "s2", "b", "s3") },
  },
  {
    reason: "ignores an order for a list that nobody has",
    target: { a: 1 },
    patch: { "$setElementOrder/secrets": named("a"), "$deleteFromPrimitiveList/x": ["a"] },
    result: { a: 1 },
  },
  {
    reason: "stores no directive and no null where there was nothing to merge into",
    target: {},
    patch: {
      secrets: [
        { name: "a", x: null },
        { $patch: "delete", name: "b" },
      ],
      map: { a: null, b: { $patch: "replace", c: 1 }, d: { $patch: "delete" }, $retainKeys: ["b"] },
    },
    result: { secrets: [{ name: "a" }], map: { b: { c: 1 } } },
  },
  {
    reason: "replaces a value of another type",
    target: { a: { b: 1 }, secrets: "none" },
    patch: { a: [1], secrets: named("x") },
    result: { a: [1], secrets: named("x") },
  },
  {
    reason: "keeps a live element without its merge key, at the end",
    target: { secrets: [{ other: 1 }, { name: "a" }] },
    patch: { secrets: [{ name: "a", x: 1 }] },
    result: { secrets: [{ name: "a", x: 1 }, { other: 1 }] },
  },
];

for (const { reason, target, patch, result } of cases) {
  test(reason, () => {
    const before = JSON.stringify([target, patch]);
    assert.deepEqual(applyStrategicMergePatch(target, patch, mergeKeys), result);
    assert.equal(JSON.stringify([target, patch]), before);
  });
}

const refused: { reason: string; patch: JsonObject; message: RegExp }[] = [
  {
    reason: "an element without its merge key",
    patch: { secrets: [{ x: 1 }] },
    message: /does not contain declared merge key: name/,
  },
  {
    reason: "an unknown directive of a map",
    patch: { data: { $patch: "explode" } },
    message: /^unknown patch type: "explode"/,
  },
  {
    reason: "an unknown directive of an element",
    patch: { secrets: [{ $patch: "explode", name: "a" }] },
    message: /^unknown patch type: "explode"/,
  },
  {
    reason: "a list of lists",
    patch: { metadata: { finalizers: [["a"]] } },
    message: /^lists of lists are not supported$/,
  },
  {
    reason: "scalars in a list of maps",
    patch: { secrets: ["a"] },
    message: /types are not identical/,
  },
  {
    reason: "retainKeys that is no list",
    patch: { data: { $retainKeys: "a" } },
    message: /^invalid patch format of retainKeys$/,
  },
  {
    reason: "a member that retainKeys does not name",
    patch: { data: { $retainKeys: ["a"], b: 1 } },
    message: /^invalid patch format of retainKeys$/,
  },
  {
    reason: "a deletion list that is no list",
    patch: { metadata: { "$deleteFromPrimitiveList/finalizers": "a" } },
    message: /^invalid patch format of primitive list$/,
  },
  {
    reason: "an order that is no list",
    patch: { "$setElementOrder/secrets": {} },
    message: /^invalid patch format of setElementOrder list$/,
  },
  {
    reason: "a list directive without a field",
    patch: { $setElementOrder: [] },
    message: /^invalid patch format of setElementOrder list$/,
  },
  {
    reason: "an order that contradicts the patch",
    patch: { "$setElementOrder/secrets": named("a", "b"), secrets: named("b", "a") },
    message: /doesn't match \$setElementOrder list/,
  },
];

for (const { reason, patch, message } of refused) {
  test(`answers 400 to ${reason}`, () => {
    const target = { secrets: named("a"), metadata: { finalizers: ["a"] }, data: { a: 1 } };
    assert.throws(
      () => applyStrategicMergePatch(target, patch, mergeKeys),
      (error) => error instanceof ApiError && error.code === 400 && message.test(error.message),
    );
  });
}

test("treats a member named __proto__ as data", () => {
  const patch: JsonObject = JSON.parse('{"a":{"__proto__":{"polluted":true}}}');
  const result = applyStrategicMergePatch({ a: { b: 1 } }, patch, mergeKeys);
  assert.equal(JSON.stringify(result), '{"a":{"b":1,"__proto__":{"polluted":true}}}');
  assert.equal(Reflect.get({}, "polluted"), undefined);
});

const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>;
const object = fc.dictionary(fc.constantFrom("a", "b", "c", "d"), json) as fc.Arbitrary<JsonObject>;

test("is a merge patch where no list is merged and no directive given", () => {
  fc.assert(
    fc.property(object, object, (target, patch) => {
      assert.deepEqual(applyStrategicMergePatch(target, patch, {}), applyMergePatch(target, patch));
    }),
  );
});

test("gives the same when a patch of merged lists is applied twice", () => {
  const list = fc
    .uniqueArray(fc.constantFrom("a", "b", "c", "d", "e"))
    .map((names): JsonObject => ({ secrets: named(...names), metadata: { finalizers: names } }));
  fc.assert(
    fc.property(list, list, (target, patch) => {
      const once = applyStrategicMergePatch(target, patch, mergeKeys);
      assert.deepEqual(applyStrategicMergePatch(once, patch, mergeKeys), once);
    }),
  );
});
