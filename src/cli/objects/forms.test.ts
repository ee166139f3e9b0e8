import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { CommandError } from "../command.ts";
import { createPaint } from "./colour.ts";
import type { ServedKind } from "./discovery.ts";
import { readExpectation } from "./expectation.ts";
import { readDurationMs } from "./go-duration.ts";
import { compileTemplate } from "./json-path-template.ts";
import { resolveKind, resolveKinds } from "./kinds.ts";
import type { Machine } from "./machine.ts";
import { readOutput } from "./output.ts";
import { readTable } from "./table.ts";
import { readTargets } from "./targets.ts";
import { textOf } from "./text.ts";

const isUsage = (error: unknown): boolean => error instanceof CommandError && error.exitCode === 64;

describe("a duration", () => {
  for (const [text, ms] of [
    ["60s", 60_000],
    ["1m30s", 90_000],
    ["0", 0],
    ["-1s", -1000],
  ] as const) {
    test(`${text} is ${ms} ms`, () => assert.equal(readDurationMs(text, "timeout"), ms));
  }
  for (const text of ["", "5", "1x", "s", "1m x"]) {
    test(`"${text}" is refused`, () => assert.throws(() => readDurationMs(text, "t"), isUsage));
  }
});

describe("a jsonpath template", () => {
  const root = {
    items: [
      { n: "a", v: [1, 2] },
      { n: "b", v: [] },
    ],
    m: { x: true },
  };
  const cases: Record<string, string> = {
    "{.items[*].n}": "a b",
    "n={.items[0].n};": "n=a;",
    ".m.x": "true",
    "{.m}": '{"x":true}',
    "{.none}": "",
    '{range .items[*]}{.n}{"\\t"}{.v[*]}{"\\n"}{end}.': "a\t1 2\nb\t\n.",
    '{.items[?(@.n=="b")].n}': "b",
  };
  for (const [template, text] of Object.entries(cases)) {
    test(`${template} fills in`, () => assert.equal(compileTemplate(template)(root), text));
  }
  for (const template of ["{.a", "{range .a}", "{end}", "{.a[}"]) {
    test(`${template} is refused`, () => assert.throws(() => compileTemplate(template), isUsage));
  }
});

describe("the words for kinds", () => {
  const kind = (plural: string, group: string, more: Partial<ServedKind> = {}): ServedKind => ({
    group,
    version: "v1",
    kind: plural.slice(0, -1),
    plural,
    singular: plural.slice(0, -1),
    shortNames: [],
    categories: [],
    namespaced: true,
    verbs: ["list"],
    ...more,
  });
  const vms = kind("vms", "berth.dev", { shortNames: ["v"], categories: ["berth"] });
  const others = kind("vms", "other.io");
  const sets = kind("sets", "berth.dev", { categories: ["berth"] });
  const served = [vms, others, sets];

  test("are plural, singular, short name, with group or version, in any case", () => {
    for (const word of ["vms", "vm", "v", "VM", "vm.berth.dev", "vms.v1.berth.dev"]) {
      assert.equal(resolveKind(served, word), vms, word);
    }
    assert.equal(resolveKind(served, "vms.other.io"), others);
  });

  test("are categories and lists, each kind once", () => {
    assert.deepEqual(resolveKinds(served, "berth"), [vms, sets]);
    assert.deepEqual(resolveKinds(served, "v,sets,vms"), [vms, sets]);
    assert.throws(() => resolveKind(served, "berth"), isUsage);
  });

  test("that nobody knows are refused as kubectl does", () => {
    assert.throws(
      () => resolveKinds(served, "foo"),
      /the server doesn't have a resource type "foo"/,
    );
  });

  test("stand before names, or before a slash", () => {
    assert.deepEqual(readTargets(served, ["vm", "a", "b"], ""), [{ kind: vms, names: ["a", "b"] }]);
    assert.deepEqual(readTargets(served, ["vm/a", "set/b"], ""), [
      { kind: vms, names: ["a"] },
      { kind: sets, names: ["b"] },
    ]);
    for (const words of [["vm/a", "b"], ["vm/"], ["a/b/c"], []]) {
      assert.throws(() => readTargets(served, words, ""), isUsage, words.join(" "));
    }
  });
});

describe("what wait waits for", () => {
  const object = (
    status: unknown,
    generation = 1,
  ): Parameters<ReturnType<typeof readExpectation>["isMet"]>[0] => ({
    apiVersion: "v1",
    kind: "X",
    metadata: { name: "x", generation },
    status,
  });
  const ready = { conditions: [{ type: "Ready", status: "True", observedGeneration: 1 }] };

  test("is a condition, of the newest declaration", () => {
    const expectation = readExpectation("condition=ready");
    assert.equal(expectation.isMet(object(ready)), true);
    assert.equal(expectation.isMet(object(ready, 2)), false);
    assert.equal(expectation.isMet(object({})), false);
    assert.equal(expectation.isMet(undefined), false);
    assert.equal(readExpectation("condition=Ready=False").isMet(object(ready)), false);
  });

  test("is a value at a path, or that there is one", () => {
    assert.equal(readExpectation("jsonpath={.status.a}=1").isMet(object({ a: 1 })), true);
    assert.equal(readExpectation("jsonpath={.status.a}=2").isMet(object({ a: 1 })), false);
    assert.equal(readExpectation("jsonpath=.status.a").isMet(object({ a: {} })), true);
    assert.equal(readExpectation("jsonpath=.status.b").isMet(object({ a: {} })), false);
  });

  test("is being there, or being gone", () => {
    assert.equal(readExpectation("delete").isMet(undefined), true);
    assert.equal(readExpectation("delete").isMet(object({})), false);
    assert.equal(readExpectation("create").isMet(object({})), true);
  });

  for (const text of [undefined, "", "ready", "condition=", "jsonpath="]) {
    test(`cannot be "${text}"`, () => assert.throws(() => readExpectation(text), isUsage));
  }
});

test("an output that there is not is refused", () => {
  for (const text of ["xml", "jsonpath", "json2"]) assert.throws(() => readOutput(text), isUsage);
});

test("colours are for a terminal, and not with NO_COLOR", () => {
  const painted = (isTerminal: boolean, variables: Record<string, string>): string => {
    const machine = { isTerminal, environment: (name: string) => variables[name] };
    return createPaint(machine as unknown as Machine)("bad", "x");
  };
  assert.equal(painted(true, {}), "\u001b[31mx\u001b[0m");
  assert.equal(painted(false, {}), "x");
  assert.equal(painted(true, { NO_COLOR: "1" }), "x");
});

test("text of others cannot steer the terminal", () => {
  assert.equal(textOf("a\u001b[2Jb\r\u009b1m\n\tc"), "a\\u001b[2Jb\\u000d\\u009b1m\n\tc");
  const row = { cells: ["x\u001b]0;title\u0007", null, 3, "two\nlines"] };
  const { rows } = readTable({ kind: "Table", rows: [row] });
  assert.deepEqual(rows[0]?.cells, ["x\\u001b]0;title\\u0007", "", "3", "two lines"]);
});
