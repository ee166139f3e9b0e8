import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isJsonObject, type Json, type JsonObject } from "./json.ts";
import { applyMergePatch, createMergePatch } from "./merge-patch.ts";

/** RFC 7386, appendix A. */
const appendix: [target: Json, patch: Json, result: Json][] = [
  [{ a: "b" }, { a: "c" }, { a: "c" }],
  [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
  [{ a: "b" }, { a: null }, {}],
  [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
  [{ a: ["b"] }, { a: "c" }, { a: "c" }],
  [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
  [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
  [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
  [
    ["a", "b"],
    ["c", "d"],
    ["c", "d"],
  ],
  [{ a: "b" }, ["c"], ["c"]],
  [{ a: "foo" }, null, null],
  [{ a: "foo" }, "bar", "bar"],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: "b", c: null }, { a: "b" }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
];

for (const [target, patch, result] of appendix) {
  const name = `merges ${JSON.stringify(patch)} into ${JSON.stringify(target)} as the RFC says`;
  test(name, () => assert.deepEqual(applyMergePatch(target, patch), result));
}

test("drops a null inside an object inside a list, as kube-apiserver does", () => {
  const patch = { disks: [{ name: "a", size: null }, null, [{ b: null }]] };
  assert.deepEqual(applyMergePatch({}, patch), { disks: [{ name: "a" }, null, [{}]] });
});

test("keeps the order of the target's members and appends new ones", () => {
  const result = applyMergePatch({ a: 1, b: 2, c: 3 }, { d: 4, b: 5 });
  assert.equal(JSON.stringify(result), '{"a":1,"b":5,"c":3,"d":4}');
});

test("treats a member named __proto__ as data", () => {
  const patch: Json = JSON.parse('{"__proto__":{"polluted":true},"constructor":{"x":1}}');
  const result = applyMergePatch({ a: 1 }, patch);
  assert.equal(JSON.stringify(result), `{"a":1,${JSON.stringify(patch).slice(1)}`);
  assert.ok(isJsonObject(result));
  assert.equal(Object.getPrototypeOf(result), Object.prototype);
  assert.equal(Reflect.get({}, "polluted"), undefined);
});

const json = fc.jsonValue({ maxDepth: 4 }) as fc.Arbitrary<Json>;
const object = fc.dictionary(fc.string(), json, { maxKeys: 5 }) as fc.Arbitrary<JsonObject>;

test("gives the same when a patch is applied twice", () => {
  fc.assert(
    fc.property(json, json, (target, patch) => {
      const once = applyMergePatch(target, patch);
      assert.deepEqual(applyMergePatch(once, patch), once);
    }),
  );
});

test("shares nothing with its arguments and leaves them alone", () => {
  fc.assert(
    fc.property(json, json, (target, patch) => {
      const before = JSON.stringify([target, patch]);
      scribble(applyMergePatch(target, patch));
      assert.equal(JSON.stringify([target, patch]), before);
    }),
  );
});

test("the patch between two values turns one into the other, and is absent between equals", () => {
  fc.assert(
    fc.property(withoutNulls(object), withoutNulls(object), (from, to) => {
      const patch = createMergePatch(from, to);
      assert.deepEqual(applyMergePatch(from, patch ?? {}), to);
      assert.equal(createMergePatch(to, to), undefined);
    }),
  );
});

/** A merge patch cannot say null, so values that hold one have no patch. */
function withoutNulls(values: fc.Arbitrary<JsonObject>): fc.Arbitrary<JsonObject> {
  return values.map((value) => applyMergePatch({}, value) as JsonObject);
}

function scribble(value: Json): void {
  if (Array.isArray(value)) {
    value.forEach(scribble);
    value.push("scribble");
  } else if (isJsonObject(value)) {
    Object.values(value).forEach(scribble);
    value["scribble"] = 1;
  }
}
