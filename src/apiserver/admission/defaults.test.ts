import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonSchema } from "../../api/schema/json-schema.ts";
import type { Json } from "../../kernel/json.ts";
import { objectOf, specRunner } from "./testing/objects.ts";

const bus: JsonSchema = { type: "string", default: "virtio" };
const disk: JsonSchema = { type: "object", properties: { name: { type: "string" }, bus } };

const cases: readonly {
  readonly name: string;
  readonly spec: JsonSchema;
  readonly value: Json;
  readonly filled: Json;
}[] = [
  {
    name: "missing fields get their default where the parent exists",
    spec: { type: "object", properties: { o: disk, p: disk } },
    value: { o: {} },
    filled: { o: { bus: "virtio" } },
  },
  {
    name: "a default is itself filled in",
    spec: { type: "object", properties: { o: { ...disk, default: {} } } },
    value: {},
    filled: { o: { bus: "virtio" } },
  },
  {
    name: "items and values of maps are filled in",
    spec: {
      type: "object",
      properties: {
        l: { type: "array", items: disk },
        m: { type: "object", additionalProperties: disk },
      },
    },
    value: { l: [{ name: "a" }, { bus: "scsi" }], m: { k: {} } },
    filled: { l: [{ name: "a", bus: "virtio" }, { bus: "scsi" }], m: { k: { bus: "virtio" } } },
  },
  {
    name: "a null that is not allowed becomes the default, or goes",
    spec: { type: "object", properties: { bus, size: { type: "integer" } } },
    value: { bus: null, size: null },
    filled: { bus: "virtio" },
  },
  {
    name: "a null that is allowed stays",
    spec: { type: "object", properties: { bus: { ...bus, nullable: true } } },
    value: { bus: null },
    filled: { bus: null },
  },
  {
    name: "a null item keeps its place unless there is a default",
    spec: {
      type: "object",
      properties: {
        l: { type: "array", items: { type: "string" } },
        d: { type: "array", items: bus },
      },
    },
    value: { l: ["a", null], d: [null] },
    filled: { l: ["a", null], d: ["virtio"] },
  },
  {
    name: "a default brings nothing in that the schema does not know",
    spec: { type: "object", properties: { o: { ...disk, default: { name: "x", odd: 1 } } } },
    value: {},
    filled: { o: { name: "x", bus: "virtio" } },
  },
  {
    name: "false and zero are defaults too, null is none",
    spec: {
      type: "object",
      properties: {
        f: { type: "boolean", default: false },
        z: { type: "integer", default: 0 },
        n: { type: "string", nullable: true, default: null },
      },
    },
    value: {},
    filled: { f: false, z: 0 },
  },
];

describe("defaults", () => {
  for (const { name, spec, value, filled } of cases) {
    test(name, () => {
      const object = objectOf(structuredClone(value));
      specRunner(spec).applyDefaults(object);
      assert.deepEqual(object["spec"], filled);
    });
  }

  test("objects do not share a default", () => {
    const runner = specRunner({
      type: "object",
      properties: { tags: { type: "array", items: { type: "string" }, default: ["a"] } },
    });
    const [one, other] = [objectOf({}), objectOf({})];
    runner.applyDefaults(one);
    runner.applyDefaults(other);
    (one["spec"] as { tags: string[] }).tags.push("b");
    assert.deepEqual(other["spec"], { tags: ["a"] });
  });

  test("metadata is not touched", () => {
    const object = { ...objectOf({}), metadata: { name: "x", creationTimestamp: null } };
    specRunner(disk).applyDefaults(object);
    assert.deepEqual(object.metadata, { name: "x", creationTimestamp: null });
  });
});
