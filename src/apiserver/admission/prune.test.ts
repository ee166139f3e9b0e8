import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonSchema } from "../../api/schema/json-schema.ts";
import type { Json } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { objectOf, runnerOf, specRunner } from "./testing/objects.ts";

const text: JsonSchema = { type: "string" };
const known: JsonSchema = { type: "object", properties: { a: text } };

interface Case {
  readonly name: string;
  readonly spec: JsonSchema;
  readonly value: Json;
  readonly kept: Json;
  readonly unknown: readonly string[];
}

const cases: readonly Case[] = [
  {
    name: "unknown fields go, and are named by their paths in order",
    spec: { type: "object", properties: { disks: { type: "array", items: known }, o: known } },
    value: { z: 1, disks: [{ a: "x" }, { a: "y", foo: { deep: 1 } }], o: { b: 1 } },
    kept: { disks: [{ a: "x" }, { a: "y" }], o: {} },
    unknown: ["spec.disks[1].foo", "spec.o.b", "spec.z"],
  },
  {
    name: "keys of a map stay, and their values are pruned",
    spec: { type: "object", additionalProperties: known },
    value: { "x.y": { a: "1", b: 2 } },
    kept: { "x.y": { a: "1" } },
    unknown: ["spec.x.y.b"],
  },
  {
    name: "preserved places keep what is unknown and prune what is known",
    spec: {
      type: "object",
      properties: { o: known },
      "x-kubernetes-preserve-unknown-fields": true,
    },
    value: { free: { x: 1 }, o: { b: 1 } },
    kept: { free: { x: 1 }, o: {} },
    unknown: ["spec.o.b"],
  },
  {
    name: "a preserved list preserves within its items",
    spec: { type: "array", items: known, "x-kubernetes-preserve-unknown-fields": true },
    value: [{ b: 1 }],
    kept: [{ b: 1 }],
    unknown: [],
  },
  {
    name: "values of the wrong type are left to validation",
    spec: { type: "object", properties: { l: { type: "array", items: text }, s: text } },
    value: { l: { x: 1 }, s: [{ y: 1 }] },
    kept: { l: {}, s: [{}] },
    unknown: ["spec.l.x", "spec.s[0].y"],
  },
  {
    name: "embedded resources carry apiVersion, kind and metadata",
    spec: { type: "object", "x-kubernetes-embedded-resource": true, properties: { a: text } },
    value: { apiVersion: "v1", kind: "X", metadata: { name: "n", foo: 1 }, b: 1 },
    kept: { apiVersion: "v1", kind: "X", metadata: { name: "n" } },
    unknown: ["spec.b", "spec.metadata.foo"],
  },
  {
    name: "names from the prototype are names like any other",
    spec: known,
    value: JSON.parse('{"a":"x","constructor":1,"__proto__":{"b":1}}') as Json,
    kept: { a: "x" },
    unknown: ["spec.__proto__", "spec.constructor"],
  },
];

describe("pruning", () => {
  for (const { name, spec, value, kept, unknown } of cases) {
    test(name, () => {
      const object = objectOf(structuredClone(value));
      assert.deepEqual(specRunner(spec).prune(object), unknown);
      assert.deepEqual(object["spec"], kept);
    });
  }

  test("metadata keeps the fields that Kubernetes knows, at every depth", () => {
    const metadata = {
      name: "x",
      labels: { "a/b": "c" },
      color: "red",
      ownerReferences: [{ apiVersion: "v1", kind: "K", name: "n", uid: "u", age: 3 }],
      managedFields: [{ manager: "m", fieldsV1: { "f:spec": { "f:a": {} } }, odd: true }],
      creationTimestamp: null,
    };
    const object = { ...objectOf({ a: "x" }), metadata } as KubeObject;
    assert.deepEqual(specRunner(known).prune(object), [
      "metadata.color",
      "metadata.managedFields[0].odd",
      "metadata.ownerReferences[0].age",
    ]);
    assert.deepEqual(object.metadata.managedFields?.[0], {
      manager: "m",
      fieldsV1: { "f:spec": { "f:a": {} } },
    });
  });

  test("metadata in the schema does not narrow metadata", () => {
    const runner = runnerOf({
      type: "object",
      properties: { metadata: { type: "object", properties: { name: text } } },
    });
    const object = { apiVersion: "v1", kind: "X", metadata: { name: "n", labels: { a: "b" } } };
    assert.deepEqual(runner.prune(object), []);
    assert.deepEqual(object.metadata.labels, { a: "b" });
  });
});
