import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { berthKinds } from "../../api/index.ts";
import type { JsonSchema } from "../../api/schema/json-schema.ts";
import type { Json } from "../../kernel/json.ts";
import { decode, encode } from "../objects/index.ts";
import { createSchemaRunners, findRuleProblems } from "./index.ts";
import { objectOf, resourceOf, specRunner } from "./testing/objects.ts";

const keys = ["a", "b", "c"];

const scalarSchema: fc.Arbitrary<JsonSchema> = fc.constantFrom<JsonSchema>(
  { type: "string" },
  { type: "string", default: "x", maxLength: 3 },
  { type: "string", nullable: true, pattern: "^a" },
  { type: "integer", minimum: 2, default: 3 },
  { "x-kubernetes-int-or-string": true },
);

const { schema } = fc.letrec<{ schema: JsonSchema }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3 },
    scalarSchema,
    fc
      .record({
        properties: fc.dictionary(fc.constantFrom(...keys), tie("schema"), { maxKeys: 3 }),
        keeps: fc.boolean(),
        required: fc.subarray(keys, { maxLength: 1 }),
      })
      .map(({ properties, keeps, required }): JsonSchema => ({
        type: "object",
        properties,
        required,
        ...(keeps ? { "x-kubernetes-preserve-unknown-fields": true } : {}),
      })),
    tie("schema").map((additionalProperties): JsonSchema => ({
      type: "object",
      additionalProperties,
    })),
    tie("schema").map((items): JsonSchema => ({ type: "array", items, maxItems: 2 })),
  ),
}));

const { value } = fc.letrec<{ value: Json }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 4 },
    fc.constantFrom<Json>("", "abc", "xyz9", 1, 5, 2.5, true, null),
    fc.dictionary(fc.constantFrom(...keys, "d"), tie("value"), {
      maxKeys: 4,
      noNullPrototype: true,
    }),
    fc.array(tie("value"), { maxLength: 3 }),
  ),
}));

describe("laws of admission", () => {
  test("what was stored is judged the second time as the first, and as by a stranger", () => {
    const rules = [{ rule: "self == oldSelf" }, { rule: "type(self) != string" }];
    const property = fc.property(schema, value, (plain, json) => {
      const spec: JsonSchema = { ...plain, "x-kubernetes-validations": rules };
      const runner = specRunner(spec);
      const text = encode(objectOf(json), 1);
      const stored = decode({ id: "n/a", revision: 1, value: text });
      const next = { ...stored, status: {} };
      const first = runner.validate(next, stored);
      const copies = [structuredClone(next), structuredClone(stored)] as const;
      assert.deepEqual(runner.validate(next, stored), first);
      assert.deepEqual(specRunner(spec).validate(...copies), first);
      assert.deepEqual(runner.validate(stored, undefined), runner.validate(copies[1], undefined));
    });
    fc.assert(property);
  });

  test("pruning twice is pruning once", () => {
    const property = fc.property(schema, value, (spec, json) => {
      const runner = specRunner(spec);
      const object = objectOf(json);
      runner.prune(object);
      const pruned = structuredClone(object);
      assert.deepEqual(runner.prune(object), []);
      assert.deepEqual(object, pruned);
    });
    fc.assert(property);
  });

  test("defaults filled in twice are defaults filled in once", () => {
    const property = fc.property(schema, value, (spec, json) => {
      const runner = specRunner(spec);
      const object = objectOf(json);
      runner.applyDefaults(object);
      const filled = structuredClone(object);
      runner.applyDefaults(object);
      assert.deepEqual(object, filled);
    });
    fc.assert(property);
  });

  test("validation changes nothing, and an unchanged object is always accepted again", () => {
    const property = fc.property(schema, value, (spec, json) => {
      const runner = specRunner(spec);
      const object = objectOf(json);
      // Fields without a schema have no past to compare with, so they are pruned first.
      runner.prune(object);
      const before = structuredClone(object);
      runner.validate(object, undefined);
      assert.deepEqual(object, before);
      const keepsUnknown = JSON.stringify(spec).includes("preserve-unknown");
      if (keepsUnknown || hasContainerInScalar(spec, object["spec"])) return;
      assert.deepEqual(runner.validate(object, before), []);
    });
    fc.assert(property);
  });
});

/** Data under a scalar schema cannot be followed into, and so is never known to be unchanged. */
function hasContainerInScalar(spec: JsonSchema, json: unknown): boolean {
  if (typeof json !== "object" || json === null) return false;
  const { properties = {}, additionalProperties: others, items } = spec;
  const childOf = (key: string): JsonSchema | undefined => {
    if (Array.isArray(json)) return items;
    return properties[key] ?? (typeof others === "object" ? others : undefined);
  };
  const entries = Object.entries(json);
  if (entries.length > 0 && childOf(entries[0]?.[0] ?? "") === undefined) return true;
  return entries.some(([key, child]) => hasContainerInScalar(childOf(key) ?? {}, child));
}

describe("runners", () => {
  test("a resource has one runner, and another resource another", () => {
    const runnerOf = createSchemaRunners();
    const [one, other] = [resourceOf({ type: "object" }), resourceOf({ type: "object" })];
    assert.equal(runnerOf(one), runnerOf(one));
    assert.notEqual(runnerOf(one), runnerOf(other));
  });

  test("a rule that does not compile is found with its place", () => {
    const rule = { rule: "self.nope == 1" };
    const problems = findRuleProblems({
      type: "object",
      properties: {
        spec: {
          type: "array",
          items: { type: "object", properties: {}, "x-kubernetes-validations": [rule] },
        },
      },
    });
    assert.deepEqual(problems, [
      {
        place: "schema.properties.spec.items.x-kubernetes-validations[0]",
        problem:
          "compilation failed: ERROR: <input>:1:5: undefined field 'nope'\n" +
          " | self.nope == 1\n | ....^",
      },
    ]);
  });

  for (const kind of berthKinds) {
    test(`all rules of ${kind.kind} compile`, () => {
      assert.deepEqual(findRuleProblems(kind.schema), []);
    });
  }

  test("the rules of one object share a budget", () => {
    const item = { rule: "self.all(a, self.all(b, a + b >= 0))" };
    const runner = specRunner({
      type: "array",
      items: { type: "array", items: { type: "integer" }, "x-kubernetes-validations": [item] },
    });
    const row = Array.from({ length: 300 }, (_, i) => i);
    const errors = runner.validate(objectOf(Array.from({ length: 30 }, () => row)), undefined);
    assert.equal(errors.length, 1);
    assert.match(
      errors[0]?.detail ?? "",
      /running out of cost budget, no further validation rules/,
    );
  });

  test("an old value that no longer fits its schema does not break a rule", () => {
    const runner = specRunner({
      type: "object",
      properties: {
        a: { type: "integer", "x-kubernetes-validations": [{ rule: "self >= oldSelf" }] },
      },
    });
    const errors = runner.validate(objectOf({ a: 2 }), objectOf({ a: "old" }));
    assert.deepEqual(errors, [
      {
        type: "FieldValueInvalid",
        field: "spec.a",
        value: '"integer"',
        detail: "invalid data, expected int, got string evaluating rule: self >= oldSelf",
      },
    ]);
  });
});
