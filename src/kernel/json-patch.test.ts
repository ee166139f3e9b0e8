import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { applyJsonPatch } from "./json-patch.ts";
import { formatJsonPointer, parseJsonPointer } from "./json-pointer.ts";
import { isJsonObject, type Json } from "./json.ts";
import { ApiError } from "./status.ts";

const applied: { reason: string; target: Json; patch: Json; result: Json }[] = [
  {
    reason: "A.1 adds an object member",
    target: { foo: "bar" },
    patch: [{ op: "add", path: "/baz", value: "qux" }],
    result: { foo: "bar", baz: "qux" },
  },
  {
    reason: "A.2 adds a list element",
    target: { foo: ["bar", "baz"] },
    patch: [{ op: "add", path: "/foo/1", value: "qux" }],
    result: { foo: ["bar", "qux", "baz"] },
  },
  {
    reason: "A.3 removes an object member",
    target: { baz: "qux", foo: "bar" },
    patch: [{ op: "remove", path: "/baz" }],
    result: { foo: "bar" },
  },
  {
    reason: "A.4 removes a list element",
    target: { foo: ["bar", "qux", "baz"] },
    patch: [{ op: "remove", path: "/foo/1" }],
    result: { foo: ["bar", "baz"] },
  },
  {
    reason: "A.5 replaces a value",
    target: { baz: "qux", foo: "bar" },
    patch: [{ op: "replace", path: "/baz", value: "boo" }],
    result: { baz: "boo", foo: "bar" },
  },
  {
    reason: "A.6 moves a value",
    target: { foo: { bar: "baz", waldo: "fred" }, qux: { corge: "grault" } },
    patch: [{ op: "move", from: "/foo/waldo", path: "/qux/thud" }],
    result: { foo: { bar: "baz" }, qux: { corge: "grault", thud: "fred" } },
  },
  {
    reason: "A.7 moves a list element",
    target: { foo: ["all", "grass", "cows", "eat"] },
    patch: [{ op: "move", from: "/foo/1", path: "/foo/3" }],
    result: { foo: ["all", "cows", "eat", "grass"] },
  },
  {
    reason: "A.8 goes on after tests that hold",
    target: { baz: "qux", foo: ["a", 2, "c"] },
    patch: [
      { op: "test", path: "/baz", value: "qux" },
      { op: "test", path: "/foo/1", value: 2 },
    ],
    result: { baz: "qux", foo: ["a", 2, "c"] },
  },
  {
    reason: "A.10 adds a nested object",
    target: { foo: "bar" },
    patch: [{ op: "add", path: "/child", value: { grandchild: {} } }],
    result: { foo: "bar", child: { grandchild: {} } },
  },
  {
    reason: "A.11 ignores unknown members",
    target: { foo: "bar" },
    patch: [{ op: "add", path: "/baz", value: "qux", xyz: 123 }],
    result: { foo: "bar", baz: "qux" },
  },
  {
    reason: "A.14 decodes ~01 to ~1",
    target: { "/": 9, "~1": 10 },
    patch: [{ op: "test", path: "/~01", value: 10 }],
    result: { "/": 9, "~1": 10 },
  },
  {
    reason: "A.16 appends a list as one element",
    target: { foo: ["bar"] },
    patch: [{ op: "add", path: "/foo/-", value: ["abc", "def"] }],
    result: { foo: ["bar", ["abc", "def"]] },
  },
  {
    reason: "copies, and the copy lives its own life",
    target: { a: { b: [1] } },
    patch: [
      { op: "copy", from: "/a", path: "/c" },
      { op: "add", path: "/c/b/-", value: 2 },
    ],
    result: { a: { b: [1] }, c: { b: [1, 2] } },
  },
  {
    reason: "replaces, adds and tests the whole document",
    target: { a: 1 },
    patch: [
      { op: "test", path: "", value: { a: 1 } },
      { op: "replace", path: "", value: { b: 2 } },
      { op: "add", path: "", value: { c: 3 } },
    ],
    result: { c: 3 },
  },
  {
    reason: "adds what it is asked to replace and cannot find, as kube-apiserver",
    target: { spec: {} },
    patch: [{ op: "replace", path: "/spec/replicas", value: 3 }],
    result: { spec: { replicas: 3 } },
  },
  {
    reason: "counts a negative index from the end, as kube-apiserver",
    target: { a: [1, 2, 3] },
    patch: [
      { op: "remove", path: "/a/-1" },
      { op: "add", path: "/a/-1", value: 9 },
      { op: "replace", path: "/a/-3", value: 7 },
    ],
    result: { a: [7, 2, 9] },
  },
  {
    reason: "finds that an absent member equals null, as kube-apiserver",
    target: { a: 1 },
    patch: [{ op: "test", path: "/b", value: null }],
    result: { a: 1 },
  },
  {
    reason: "tests without regard to the order of members",
    target: { a: { x: 1, y: [null, "é"] } },
    patch: [{ op: "test", path: "/a", value: { y: [null, "é"], x: 1 } }],
    result: { a: { x: 1, y: [null, "é"] } },
  },
  {
    reason: "reaches empty and awkward member names",
    target: { "": { "a/b": { "m~n": 1 } } },
    patch: [{ op: "replace", path: "//a~1b/m~0n", value: 2 }],
    result: { "": { "a/b": { "m~n": 2 } } },
  },
];

for (const { reason, target, patch, result } of applied) {
  test(reason, () => assert.deepEqual(applyJsonPatch(target, patch), result));
}

const refused: { reason: string; target: Json; patch: Json; why: RegExp }[] = [
  {
    reason: "a failed test (A.9)",
    target: { baz: "qux" },
    patch: [{ op: "test", path: "/baz", value: "bar" }],
    why: /^test operation: testing value \/baz failed: test failed$/,
  },
  {
    reason: "adding to a nonexistent target (A.12)",
    target: { foo: "bar" },
    patch: [{ op: "add", path: "/baz/bat", value: "qux" }],
    why: /doc is missing path/,
  },
  {
    reason: "comparing strings and numbers (A.15)",
    target: { "/": 9, "~1": 10 },
    patch: [{ op: "test", path: "/~01", value: "10" }],
    why: /test failed/,
  },
  {
    reason: "removing what is not there",
    target: { a: 1 },
    patch: [{ op: "remove", path: "/b" }],
    why: /Unable to remove nonexistent key: b/,
  },
  {
    reason: "removing an inherited member",
    target: {},
    patch: [{ op: "remove", path: "/constructor" }],
    why: /nonexistent key/,
  },
  {
    reason: "walking through an inherited member",
    target: {},
    patch: [{ op: "add", path: "/__proto__/polluted", value: true }],
    why: /doc is missing path/,
  },
  {
    reason: "an index beyond the end",
    target: { a: [1] },
    patch: [{ op: "add", path: "/a/2", value: 1 }],
    why: /invalid index: 2/,
  },
  {
    reason: "replacing just beyond the end",
    target: { a: [1] },
    patch: [{ op: "replace", path: "/a/1", value: 1 }],
    why: /invalid index: 1/,
  },
  {
    reason: "an index with a leading zero",
    target: { a: [1, 2] },
    patch: [{ op: "remove", path: "/a/01" }],
    why: /not a proper array index: '01'/,
  },
  {
    reason: "an index that is none",
    target: { a: [1] },
    patch: [{ op: "test", path: "/a/length", value: 1 }],
    why: /not a proper array index/,
  },
  {
    reason: "a dash where nothing is added",
    target: { a: [1] },
    patch: [{ op: "remove", path: "/a/-" }],
    why: /not a proper array index: '-'/,
  },
  {
    reason: "moving a value into itself",
    target: { a: { b: 1 } },
    patch: [{ op: "move", from: "/a", path: "/a/b/c" }],
    why: /doc is missing path/,
  },
  {
    reason: "copying what is not there",
    target: {},
    patch: [{ op: "copy", from: "/a", path: "/b" }],
    why: /missing from path/,
  },
  {
    reason: "removing the whole document",
    target: {},
    patch: [{ op: "remove", path: "" }],
    why: /cannot be removed/,
  },
  {
    reason: "an unknown operation",
    target: {},
    patch: [{ op: "spam", path: "/a" }],
    why: /Unexpected kind: spam/,
  },
  { reason: "no operation", target: {}, patch: [{ path: "/a" }], why: /Unexpected kind: unknown/ },
  { reason: "no path", target: {}, patch: [{ op: "add", value: 1 }], why: /decode path/ },
  { reason: "no from", target: {}, patch: [{ op: "move", path: "/a" }], why: /decode from/ },
  {
    reason: "no value",
    target: {},
    patch: [{ op: "add", path: "/a" }],
    why: /missing value field/,
  },
  {
    reason: "a path without a slash",
    target: {},
    patch: [{ op: "add", path: "a", value: 1 }],
    why: /not a JSON pointer/,
  },
  {
    reason: "a wrong escape",
    target: {},
    patch: [{ op: "add", path: "/a~2", value: 1 }],
    why: /not a JSON pointer/,
  },
];

for (const { reason, target, patch, why } of refused) {
  test(`refuses ${reason} with 422, and says why in the cause`, () => {
    const error = refusalOf(target, patch);
    assert.equal(error.code, 422);
    assert.equal(error.reason, "Invalid");
    const words = "the server rejected our request due to an error in our request";
    assert.equal(error.message, words);
    assert.match(error.details?.causes?.[0]?.message ?? "", why);
  });
}

const malformed: [patch: Json, message: string][] = [
  [
    { op: "add" },
    "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
  ],
  [
    ["add"],
    "error decoding patch: json: cannot unmarshal string into Go value of type handlers.jsonPatchOp",
  ],
  [
    [{ op: 1, path: "/a" }],
    "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
  ],
  [
    [{ op: "add", path: ["a"] }],
    "error decoding patch: json: cannot unmarshal array into Go struct field jsonPatchOp.path of type string",
  ],
];

for (const [patch, message] of malformed) {
  test(`answers 400 to ${JSON.stringify(patch)}`, () => {
    const error = refusalOf({}, patch);
    assert.equal(error.code, 400);
    assert.equal(error.message, message);
  });
}

test("applies nothing when a later operation is refused", () => {
  const target = { a: [1] };
  refusalOf(target, [
    { op: "add", path: "/a/-", value: 2 },
    { op: "test", path: "/a/0", value: 9 },
  ]);
  assert.deepEqual(target, { a: [1] });
});

test("takes ten thousand operations and not one more", () => {
  const operation = { op: "add", path: "/a", value: 1 };
  const most = Array.from({ length: 10_000 }, () => operation);
  assert.deepEqual(applyJsonPatch({}, most), { a: 1 });
  const error = refusalOf({}, [...most, operation]);
  assert.equal(error.code, 413);
  const words = "The allowed maximum operations in a JSON patch is 10000, got 10001";
  assert.equal(error.message, words);
});

test("refuses copies that double the object again and again", () => {
  const target = { a: ["x".repeat(1000)] };
  const patch = Array.from({ length: 30 }, () => ({ op: "copy", from: "/a", path: "/a/-" }));
  assert.match(causeOf(refusalOf(target, patch)), /exceeding the limit 3145728/);
});

test("refuses to nest an object without end", () => {
  const patch: Json[] = [];
  for (let i = 0; i < 10; i++) {
    patch.push({ op: "copy", from: "/a", path: `/b`, value: 1 });
    patch.push({ op: "move", from: "/b", path: `/a${"/x".repeat(2 ** i)}` });
  }
  assert.match(causeOf(refusalOf({ a: {} }, patch)), /nested deeper than 100/);
});

test("refuses a patch that shifts a long list again and again", () => {
  const target = { a: Array.from({ length: 100_000 }, () => 0) };
  const patch = Array.from({ length: 9_999 }, () => ({ op: "add", path: "/a/0", value: 1 }));
  assert.match(causeOf(refusalOf(target, patch)), /too much work/);
});

test("treats a member named __proto__ as data", () => {
  const result = applyJsonPatch({}, [{ op: "add", path: "/__proto__", value: { polluted: true } }]);
  assert.ok(isJsonObject(result));
  assert.equal(Object.getPrototypeOf(result), Object.prototype);
  assert.equal(JSON.stringify(result), '{"__proto__":{"polluted":true}}');
  assert.equal(Reflect.get({}, "polluted"), undefined);
});

const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>;

test("a pointer splits into the tokens it was made of", () => {
  fc.assert(
    fc.property(fc.array(fc.string()), (tokens) => {
      assert.deepEqual(parseJsonPointer(formatJsonPointer(tokens)), tokens);
    }),
  );
});

test("what was added at a path passes a test there, and removing it restores the object", () => {
  fc.assert(
    fc.property(fc.string(), json, json, (key, value, other) => {
      const path = formatJsonPointer([`new-${key}`]);
      const added = applyJsonPatch({ other }, [
        { op: "add", path, value },
        { op: "test", path, value },
      ]);
      assert.deepEqual(applyJsonPatch(added, [{ op: "remove", path }]), { other });
    }),
  );
});

test("never throws anything but an ApiError, whatever the operations", () => {
  const pointer = fc.oneof(
    fc.string(),
    fc.array(fc.constantFrom("a", "0", "-", "1", "__proto__", "-1")).map(formatJsonPointer),
  );
  const operation = fc.record(
    {
      op: fc.constantFrom("add", "remove", "replace", "move", "copy", "test"),
      path: pointer,
      from: pointer,
      value: json,
    },
    { requiredKeys: ["op"] },
  ) as fc.Arbitrary<Json>;
  fc.assert(
    fc.property(json, fc.oneof(fc.array(operation), json), (target, patch) => {
      const before = JSON.stringify(target);
      try {
        applyJsonPatch(target, patch);
      } catch (error) {
        assert.ok(error instanceof ApiError);
      }
      assert.equal(JSON.stringify(target), before);
    }),
    { numRuns: 500 },
  );
});

function refusalOf(target: Json, patch: Json): ApiError {
  try {
    applyJsonPatch(target, patch);
  } catch (error) {
    assert.ok(error instanceof ApiError, String(error));
    return error;
  }
  return assert.fail("the patch was applied");
}

function causeOf(error: ApiError): string {
  return error.details?.causes?.[0]?.message ?? "";
}
