import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { compileJsonPath, memberNames } from "./json-path.ts";
import { ApiError } from "./status.ts";

const object = {
  metadata: { labels: { "example.com/a": "x", plain: "y" }, "it's": 1 },
  spec: {
    replicas: 3,
    disks: [
      { name: "a", size: 1 },
      { name: "b", size: 20 },
    ],
    nothing: null,
  },
  status: {
    conditions: [
      { type: "Synced", status: "False" },
      { type: "Ready", status: "True", at: "2" },
    ],
    addresses: ["10.0.0.1", "10.0.0.2"],
  },
};

const found: [path: string, matches: unknown[]][] = [
  [".spec.replicas", [3]],
  ["$.spec.replicas", [3]],
  ["{.spec.replicas}", [3]],
  ["", [object]],
  [".metadata.labels['example.com/a']", ["x"]],
  ['.metadata.labels["plain"]', ["y"]],
  [".metadata.labels.example\\.com/a", ["x"]],
  [".metadata['it\\'s']", [1]],
  [".spec.nothing", [null]],
  [".spec.absent.deeper", []],
  [".spec.replicas.deeper", []],
  [".spec.disks.name", []],
  [".status.addresses[0]", ["10.0.0.1"]],
  [".status.addresses[-1]", ["10.0.0.2"]],
  [".status.addresses[2]", []],
  [".status.addresses[-3]", []],
  [".spec[0]", []],
  [".spec.disks[*].name", ["a", "b"]],
  [".spec[*]", []],
  [".metadata.labels.*", ["x", "y"]],
  ['.status.conditions[?(@.type=="Ready")].status', ["True"]],
  [".status.conditions[?(@.type=='Ready')].status", ["True"]],
  ['.status.conditions[?( @.type == "Ready" )].status', ["True"]],
  ['.status.conditions[?(@.type!="Ready")].status', ["False"]],
  ['.status.conditions[?(@.type=="Gone")].status', []],
  [".status.conditions[?(@.at)].type", ["Ready"]],
  [".status.conditions[?(@.at==2)].type", []],
  [".spec.disks[?(@.size>1)].name", ["b"]],
  [".spec.disks[?(@.size>=1)].name", ["a", "b"]],
  [".spec.disks[?(@.size<20)].name", ["a"]],
  [".spec.disks[?(@.size<=20)].name", ["a", "b"]],
  ['.spec.disks[?(@.name>"a")].size', [20]],
  ['.spec[?(@.name=="a")]', []],
  [".constructor", []],
  [".spec.__proto__", []],
  [".status.addresses.length", []],
];

for (const [path, matches] of found) {
  test(`finds ${JSON.stringify(matches).slice(0, 40)} under "${path}"`, () => {
    const compiled = compileJsonPath(path);
    assert.deepEqual(compiled.all(object), matches);
    assert.deepEqual(compiled.first(object), matches[0]);
  });
}

const refused = [
  "spec",
  ".",
  ".a..b",
  "..a",
  ".a[",
  ".a[]",
  ".a[b]",
  ".a[0:2]",
  ".a[0,1]",
  ".a[?(@.b=)]",
  ".a[?(@.b==c)]",
  ".a[?(b)]",
  '.a[?(@.b=="c)]',
  ".a b",
  "{.a}{.b}",
];

for (const path of refused) {
  test(`refuses "${path}"`, () => {
    assert.throws(
      () => compileJsonPath(path),
      (error) => error instanceof ApiError && error.code === 400,
    );
  });
}

test("names the members of a plain path, and of no other", () => {
  assert.deepEqual(memberNames(".spec.replicas"), ["spec", "replicas"]);
  assert.deepEqual(memberNames(".a['b.c']"), ["a", "b.c"]);
  assert.equal(memberNames(".a[0]"), undefined);
  assert.equal(memberNames(".a[*]"), undefined);
  assert.equal(memberNames('.a[?(@.b=="c")]'), undefined);
});

test("finds any member by its quoted name", () => {
  fc.assert(
    fc.property(fc.string(), (name) => {
      fc.pre(!/[\n\r\u2028\u2029]/.test(name));
      const quoted = name.replaceAll(/['\\]/g, "\\$&");
      const value = Object.fromEntries([[name, "found"]]);
      assert.equal(compileJsonPath(`['${quoted}']`).first(value), "found");
    }),
  );
});

test("never throws when it is run, whatever the value", () => {
  const paths = found.map(([path]) => compileJsonPath(path));
  fc.assert(
    fc.property(fc.constantFrom(...paths), fc.anything(), (path, value) => void path.all(value)),
  );
});
