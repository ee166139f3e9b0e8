import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { JsonSchema } from "../../api/schema/json-schema.ts";
import { compileExpression, CelCompileError, CelCostError, declareSchema } from "./index.ts";
import { typeName } from "./types.ts";
import { CelList, type Value } from "./values.ts";

function evaluate(source: string, schema: JsonSchema, raw: unknown): Value {
  const declared = declareSchema(schema, false);
  assert.ok(declared !== undefined, "the schema is visible to rules");
  const program = compileExpression(source, [{ name: "self", type: declared.type }]);
  return program.run([declared.adapt(raw)], 1_000_000).value;
}

const disk: JsonSchema = {
  type: "object",
  properties: {
    name: { type: "string" },
    size: { "x-kubernetes-int-or-string": true },
    "boot-order": { type: "integer" },
    namespace: { type: "string", nullable: true },
  },
};
const vm: JsonSchema = {
  type: "object",
  properties: {
    disks: { type: "array", items: disk },
    labels: { type: "object", additionalProperties: { type: "string" } },
    ratio: { type: "number" },
    since: { type: "string", format: "date-time" },
    every: { type: "string", format: "duration" },
    blob: { type: "string", format: "byte" },
  },
};
const object = {
  disks: [
    { name: "root", size: "20Gi", "boot-order": 1, namespace: null },
    { name: "data", size: 1024 },
  ],
  labels: { "berth.dev/team": "a" },
  ratio: 2,
  since: "2026-01-02T03:04:05.5Z",
  every: "90m",
  blob: "aGk=",
};

describe("values of a schema", () => {
  const cases: readonly (readonly [string, Value])[] = [
    ["self.disks[0].boot__dash__order + 1", 2n],
    ["self.disks.map(d, d.name).join(',')", "root,data"],
    ["type(self.disks[0].size) == string && type(self.disks[1].size) == int", true],
    ["quantity(self.disks[0].size).isGreaterThan(quantity('1Gi'))", true],
    ["has(self.disks[0].__namespace__)", false],
    ["self.labels['berth.dev/team']", "a"],
    ["self.labels.all(k, k.startsWith('berth'))", true],
    ["self.ratio / 4.0", 0.5],
    ["self.since.getMilliseconds()", 500n],
    ["self.every.getMinutes()", 90n],
    ["string(self.blob)", "hi"],
    ["self.?labels[?'x'].orValue('none')", "none"],
    ["self.disks.exists_one(d, has(d.boot__dash__order))", true],
    ["self.disks.filter(d, type(d.size) == int)[0].name", "data"],
    ["self.disks.all(i, d, i < 2 && d.name != '')", true],
    ["self.labels.transformMap(k, v, v + '!')['berth.dev/team']", "a!"],
    ["dyn(self.disks[0].size) == '20Gi'", true],
  ];
  for (const [source, expected] of cases) {
    test(source, () => assert.deepEqual(evaluate(source, vm, object), expected));
  }

  test("data without a type is not visible", () => {
    assert.equal(declareSchema({ "x-kubernetes-preserve-unknown-fields": true }, false), undefined);
  });

  test("resources have a kind and a name even where the schema does not say so", () => {
    const declared = declareSchema({ type: "object", properties: {} }, true);
    assert.ok(declared?.type.kind === "object");
    assert.deepEqual([...declared.type.fields.keys()], ["apiVersion", "kind", "metadata"]);
  });
});

describe("the price of an expression", () => {
  const priceOf = (source: string, values: readonly Value[]): number => {
    const variables = [{ name: "self", type: { kind: "list", item: { kind: "int" } } as const }];
    return compileExpression(source, variables).run(values, 1_000_000).cost;
  };
  const numbers = CelList.of([1n, 2n, 3n]);

  // The prices are Kubernetes': what it refuses as too costly must be refused here too.
  const cases: readonly (readonly [string, number])[] = [
    ["1 + 2 == 3", 2],
    ["[1, 2, 3].all(x, x > 0)", 16],
    ["[1, 2, 3].exists(x, x > 2)", 19],
    ["[1, 2, 3].exists_one(x, x > 2)", 10],
    ["[1, 2, 3].map(x, x * 2) == [2, 4, 6]", 44],
    ["[1, 2, 3].filter(x, x > 1) == [2, 3]", 34],
    ["'abcdefghijabcdefghij'.matches('[a-z]+')", 6],
    ["sets.equivalent([1, 2], [2, 1, 1])", 13],
    ["self.size() == 3", 3],
  ];
  for (const [source, price] of cases) {
    test(`${source} costs ${price}`, () => assert.equal(priceOf(source, [numbers]), price));
  }

  test("an expression that does too much is stopped, and nothing can absorb that", () => {
    const many = CelList.of(Array.from({ length: 200 }, (_, i) => BigInt(i)));
    const source = "true || self.all(a, self.all(b, self.all(c, a + b + c >= 0)))";
    assert.equal(priceOf(source, [many]), 0);
    const costly = "self.all(a, self.all(b, self.all(c, a + b + c >= 0))) || true";
    assert.throws(() => priceOf(costly, [many]), CelCostError);
  });
});

describe("expressions that are not well formed", () => {
  const variables = [{ name: "self", type: { kind: "int" } as const }];
  const cases: readonly (readonly [string, RegExp])[] = [
    ["self.x", /^ERROR: <input>:1:5: type 'int' does not support field selection\n \| self\.x\n/],
    ["self +", /^ERROR: <input>:1:7: Syntax error: /],
    ["self + 'a'", /found no matching overload for '_\+_' applied to '\(int, string\)'/],
    [
      "1 == 1 &&\n  nope",
      /^ERROR: <input>:2:3: undeclared reference to 'nope' \(in container ''\)/,
    ],
    ["9223372036854775808", /invalid int literal/],
    ["has(self)", /invalid argument to has\(\) macro/],
    ["[1].map(1, 2)", /^ERROR: <input>:1:9: /],
    ["duration('x') == duration('1s')", /^ERROR: <input>:1:10: invalid duration argument/],
    ["namespace", /Reserved identifier: namespace/],
    ["(".repeat(300), /Exceeded maxDepth/],
  ];
  for (const [source, complaint] of cases) {
    test(source.slice(0, 40), () => {
      assert.throws(
        () => compileExpression(source, variables),
        (error) => error instanceof CelCompileError && complaint.test(error.message),
      );
    });
  }

  test("the type of an expression is known without running it", () => {
    const typeOf = (source: string): string => typeName(compileExpression(source, variables).type);
    assert.equal(typeOf("[self].map(x, {'a': x})"), "list(map(string, int))");
    assert.equal(typeOf("optional.of(self)"), "optional_type(int)");
    assert.equal(typeOf("quantity('1')"), "kubernetes.Quantity");
    assert.equal(typeOf("self > 1 ? [1] : []"), "list(int)");
  });
});
