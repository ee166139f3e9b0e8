import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { KubeObject, ObjectMeta } from "../../kernel/object.ts";
import {
  afterUpdate,
  decode,
  deletionDecision,
  deletionOf,
  encode,
  isImmutable,
  updateDecision,
  withoutFinalizer,
  withoutOwners,
  type DeletionOptions,
} from "./index.ts";

const nowMs = Date.UTC(2026, 0, 2, 3, 4, 5, 999);
const now = "2026-01-02T03:04:05Z";

function widget(metadata: ObjectMeta = {}): KubeObject {
  return {
    apiVersion: "berth.dev/v1",
    kind: "Widget",
    metadata: { name: "a", namespace: "n", uid: "u", ...metadata },
    spec: { size: 1 },
  };
}

function namespace(metadata: ObjectMeta, finalizers = ["kubernetes"]): KubeObject {
  return {
    apiVersion: "v1",
    kind: "Namespace",
    metadata: { name: "n", uid: "u", ...metadata },
    spec: { finalizers },
    status: { phase: "Active", other: 1 },
  };
}

test("stores an object with its revision, and reads it back once for everybody", () => {
  const object = widget({ resourceVersion: "1" });
  const entry = { id: "n/a", revision: 7, value: encode(object, 7) };
  assert.deepEqual(decode(entry), widget({ resourceVersion: "7" }));
  assert.equal(decode(entry), decode(entry));
  assert.equal(object.metadata.resourceVersion, "1");
});

test("gives out objects that cannot be changed by accident", () => {
  const object = decode({ id: "n/a", revision: 1, value: encode(widget(), 1) });
  assert.throws(() => Reflect.set(object.metadata, "name", "b") || assert.fail("TypeError"));
  assert.ok(Object.isFrozen(object["spec"]));
});

test("shares what did not change with the object before", () => {
  const before = decode({ id: "n/a", revision: 1, value: encode(widget(), 1) });
  const next = { ...before, status: { phase: "Ready" } };
  const after = decode({ id: "n/a", revision: 2, value: encode(next, 2) });
  assert.equal(after["spec"], before["spec"]);
  assert.ok(isImmutable(after["spec"]) && isImmutable(after["status"]));
  assert.ok(!isImmutable({ size: 1 }) && !isImmutable(Object.freeze({ size: 1 })));
});

test("reads back what the stored bytes say, whatever was written", () => {
  const strange = fc.constantFrom(undefined, Number.NaN, Infinity, -0, new Date(0), new Map());
  const member = fc.oneof(fc.jsonValue(), strange, fc.record({ a: strange }), fc.tuple(strange));
  const property = fc.property(member, member, (spec, status) => {
    const value = encode({ ...widget(), spec, status }, 5);
    const read = decode({ id: "n/a", revision: 5, value });
    assert.deepStrictEqual(read, JSON.parse(new TextDecoder().decode(value)));
  });
  fc.assert(property);
});

test("keeps members named __proto__ as data", () => {
  const object: KubeObject = JSON.parse(
    '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"__proto__":"x"}},"__proto__":{"y":1}}',
  );
  const text = new TextDecoder().decode(encode(object, 3));
  assert.match(text, /"labels":\{"__proto__":"x"\}/);
  assert.match(text, /"__proto__":\{"y":1\}/);
});

test("refuses to read what is no object", () => {
  const value = new TextEncoder().encode("[]");
  assert.throws(() => decode({ id: "n/a", revision: 1, value }), /the store holds an object/);
});

interface Case {
  reason: string;
  metadata: ObjectMeta;
  options: DeletionOptions;
  /** What the metadata gains or loses; a word where the object is not stored. */
  result: Partial<ObjectMeta> | "remove" | "keep";
}

const marks = { deletionTimestamp: now, deletionGracePeriodSeconds: 0 };
const earlier = { deletionTimestamp: "2026-01-01T00:00:00Z", deletionGracePeriodSeconds: 0 };

const cases: Case[] = [
  {
    reason: "an object without finalizers goes at once",
    metadata: {},
    options: {},
    result: "remove",
  },
  {
    reason: "background needs no finalizer",
    metadata: {},
    options: { propagationPolicy: "Background" },
    result: "remove",
  },
  {
    reason: "a finalizer keeps it, and the generation moves on",
    metadata: { finalizers: ["x/y"], generation: 5 },
    options: {},
    result: { ...marks, finalizers: ["x/y"], generation: 6 },
  },
  {
    reason: "an object without a generation gets none",
    metadata: { finalizers: ["x/y"] },
    options: {},
    result: { ...marks, finalizers: ["x/y"] },
  },
  {
    reason: "foreground adds its finalizer",
    metadata: { finalizers: ["x/y"], generation: 1 },
    options: { propagationPolicy: "Foreground" },
    result: { ...marks, finalizers: ["x/y", "foregroundDeletion"], generation: 2 },
  },
  {
    reason: "orphan adds its finalizer",
    metadata: {},
    options: { propagationPolicy: "Orphan" },
    result: { ...marks, finalizers: ["orphan"] },
  },
  {
    reason: "the older option says the same",
    metadata: {},
    options: { orphanDependents: true },
    result: { ...marks, finalizers: ["orphan"] },
  },
  {
    reason: "the older option takes it away",
    metadata: { finalizers: ["orphan"] },
    options: { orphanDependents: false },
    result: "remove",
  },
  {
    reason: "without a policy the object's own finalizer decides",
    metadata: { finalizers: ["orphan", "x/y"] },
    options: {},
    result: { ...marks, finalizers: ["x/y", "orphan"] },
  },
  {
    reason: "a policy replaces the finalizer of another",
    metadata: { finalizers: ["orphan"] },
    options: { propagationPolicy: "Foreground" },
    result: { ...marks, finalizers: ["foregroundDeletion"] },
  },
  {
    reason: "a second delete changes nothing",
    metadata: { ...earlier, finalizers: ["x/y"], generation: 2 },
    options: {},
    result: "keep",
  },
  {
    reason: "a second delete with another policy changes the finalizers only",
    metadata: { ...earlier, finalizers: ["foregroundDeletion", "x/y"], generation: 2 },
    options: { propagationPolicy: "Background" },
    result: { ...earlier, finalizers: ["x/y"], generation: 2 },
  },
  {
    reason: "a second delete can end the wait",
    metadata: { ...earlier, finalizers: ["foregroundDeletion"] },
    options: { propagationPolicy: "Background" },
    result: "remove",
  },
];

for (const { reason, metadata, options, result } of cases) {
  test(`on DELETE ${reason}`, () => {
    const object = widget(metadata);
    const deletion = deletionOf(object, options, nowMs);
    if (typeof result === "string") {
      assert.deepEqual(deletion, { do: result });
    } else {
      assert.deepEqual(deletion, { do: "mark", object: widget(result) });
    }
    assert.deepEqual(object, widget(metadata), "the object itself is left alone");
  });
}

test("on DELETE a Namespace waits for its content, and says that it is terminating", () => {
  const deletion = deletionOf(namespace({}), {}, nowMs);
  assert.equal(deletion.do, "mark");
  const expected = { ...namespace(marks), status: { phase: "Terminating", other: 1 } };
  assert.deepEqual(deletion.do === "mark" && deletion.object, expected);
  assert.deepEqual(deletionOf(namespace({}, []), {}, nowMs), { do: "remove" });
});

test("after an update a deleting object goes with its last finalizer", () => {
  assert.equal(afterUpdate(widget({})), "store");
  assert.equal(afterUpdate(widget({ finalizers: ["x/y"] })), "store");
  assert.equal(afterUpdate(widget({ ...marks, finalizers: ["x/y"] })), "store");
  assert.equal(afterUpdate(widget({ ...marks, finalizers: [] })), "remove");
  assert.equal(afterUpdate(widget(marks)), "remove");
  assert.equal(afterUpdate(namespace(marks)), "store");
  assert.equal(afterUpdate(namespace(marks, [])), "remove");
});

test("the decisions for the store carry the state that watchers see last", () => {
  const decision = deletionDecision(widget(), {}, nowMs);
  assert.ok(decision.do === "delete");
  const last: unknown = JSON.parse(new TextDecoder().decode(decision.encode(9)));
  assert.deepEqual(last, widget({ resourceVersion: "9" }));
  assert.equal(deletionDecision(widget({ finalizers: ["x"] }), {}, nowMs).do, "put");
  assert.equal(deletionDecision(widget({ ...marks, finalizers: ["x"] }), {}, nowMs).do, "keep");
  assert.equal(updateDecision(widget(marks)).do, "delete");
  assert.equal(updateDecision(widget()).do, "put");
});

test("takes away a finalizer or an owner, and the list with the last one", () => {
  const finalizers = ["a", "b"];
  assert.deepEqual(withoutFinalizer(widget({ finalizers }), "a"), widget({ finalizers: ["b"] }));
  assert.deepEqual(withoutFinalizer(widget({ finalizers: ["a"] }), "a"), widget());
  const owner = { apiVersion: "v1", kind: "X", name: "x", uid: "1" };
  const both = widget({ ownerReferences: [owner, { ...owner, uid: "2" }] });
  assert.deepEqual(withoutOwners(both, new Set(["2"])), widget({ ownerReferences: [owner] }));
  assert.deepEqual(withoutOwners(both, new Set(["1", "2"])), widget());
});
