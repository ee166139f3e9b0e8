import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { matchesLabels, parseLabelSelector, type LabelSelector } from "./label-selector.ts";
import { ApiError } from "./status.ts";

const parsed: [text: string, selector: LabelSelector][] = [
  ["", []],
  ["  ", []],
  ["a", [{ key: "a", operator: "exists", values: [] }]],
  ["!a", [{ key: "a", operator: "!", values: [] }]],
  [
    "! a , b",
    [
      { key: "a", operator: "!", values: [] },
      { key: "b", operator: "exists", values: [] },
    ],
  ],
  ["a=b", [{ key: "a", operator: "in", values: ["b"] }]],
  ["a==b", [{ key: "a", operator: "in", values: ["b"] }]],
  ["a = b", [{ key: "a", operator: "in", values: ["b"] }]],
  ["a!=b", [{ key: "a", operator: "notin", values: ["b"] }]],
  ["a=", [{ key: "a", operator: "in", values: [""] }]],
  [
    "a=,b",
    [
      { key: "a", operator: "in", values: [""] },
      { key: "b", operator: "exists", values: [] },
    ],
  ],
  ["a in (c, b,c)", [{ key: "a", operator: "in", values: ["b", "c"] }]],
  ["a notin(b)", [{ key: "a", operator: "notin", values: ["b"] }]],
  ["a in ()", [{ key: "a", operator: "in", values: [""] }]],
  ["a in (,)", [{ key: "a", operator: "in", values: [""] }]],
  ["a in (b,)", [{ key: "a", operator: "in", values: ["", "b"] }]],
  ["a in (b,,c)", [{ key: "a", operator: "in", values: ["", "b", "c"] }]],
  ["in in (in,notin)", [{ key: "in", operator: "in", values: ["in", "notin"] }]],
  ["a=in", [{ key: "a", operator: "in", values: ["in"] }]],
  ["example.com/a=b", [{ key: "example.com/a", operator: "in", values: ["b"] }]],
  [
    "a>1,b<2",
    [
      { key: "a", operator: "gt", values: ["1"] },
      { key: "b", operator: "lt", values: ["2"] },
    ],
  ],
];

for (const [text, selector] of parsed) {
  test(`reads "${text}"`, () => assert.deepEqual(parseLabelSelector(text), selector));
}

const shape = "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]'";
const namePart = `name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is ${shape})`;
const valueWords =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

const refused: [text: string, message: string][] = [
  [",a", "found ',', expected: !, identifier, or 'end of string'"],
  ["a,", "found '', expected: identifier after ','"],
  ["a,,b", "found ',', expected: identifier after ','"],
  ["=a", "found '=', expected: !, identifier, or 'end of string'"],
  ["a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"],
  ["a==b=c", "found '=', expected: ',' or 'end of string'"],
  ["!a=b", "found '=', expected: ',' or 'end of string'"],
  ["!", "unable to parse requirement: found '', expected: identifier"],
  ["a in b", "unable to parse requirement: found 'b' expected: '('"],
  ["a in (b", "unable to parse requirement: found '', expected: ',' or ')'"],
  ["a in (b=", "unable to parse requirement: found '=', expected: ',' or ')'"],
  ["a=(", "unable to parse requirement: found '(', expected: identifier"],
  ["-a", `unable to parse requirement: <nil>: Invalid value: "-a": ${namePart}`],
  ["a=-b", `unable to parse requirement: values[0][a]: Invalid value: "-b": ${valueWords}`],
  [
    "a>b",
    `unable to parse requirement: values[0]: Invalid value: "b": for 'Gt', 'Lt' operators, the value must be an integer`,
  ],
];

for (const [text, message] of refused) {
  test(`answers 400 to "${text}" in Kubernetes' words`, () => {
    assert.throws(
      () => parseLabelSelector(text),
      (error) => {
        assert.ok(error instanceof ApiError);
        assert.equal(error.code, 400);
        assert.equal(error.message, message);
        return true;
      },
    );
  });
}

const labels = { app: "web", tier: "", size: "10" };
const matched: [text: string, matches: boolean][] = [
  ["", true],
  ["app", true],
  ["!app", false],
  ["!other", true],
  ["app=web", true],
  ["app!=web", false],
  ["other!=web", true],
  ["other=web", false],
  ["app in (web,db)", true],
  ["app notin (web,db)", false],
  ["other notin (web)", true],
  ["tier=", true],
  ["tier", true],
  ["app=web,tier=x", false],
  ["size>9", true],
  ["size<10", false],
  ["app>1", false],
  ["other<1", false],
  ["toString", false],
  ["!constructor", true],
];

for (const [text, matches] of matched) {
  test(`"${text}" ${matches ? "selects" : "does not select"} the example`, () => {
    assert.equal(matchesLabels(parseLabelSelector(text), labels), matches);
  });
}

test("an object without labels is selected by what asks for nothing", () => {
  assert.equal(matchesLabels(parseLabelSelector("!a,b!=c"), undefined), true);
  assert.equal(matchesLabels(parseLabelSelector("a"), undefined), false);
});

test("compares numbers beyond the safe integers", () => {
  const selector = parseLabelSelector("a>9007199254740992");
  assert.equal(matchesLabels(selector, { a: "9007199254740993" }), true);
});

const key = fc.constantFrom("a", "b.c", "example.com/d", "in", "notin");
const value = fc.constantFrom("", "x", "y_z", "in", "1");

test("a selector and its negation divide all label sets", () => {
  const set = fc.dictionary(key, value);
  fc.assert(
    fc.property(key, fc.array(value, { minLength: 1 }), set, (name, values, given) => {
      const inSet = parseLabelSelector(`${name} in (${values.join(",")})`);
      const notIn = parseLabelSelector(`${name} notin (${values.join(",")})`);
      assert.notEqual(matchesLabels(inSet, given), matchesLabels(notIn, given));
    }),
  );
});

test("never throws anything but an ApiError", () => {
  const text = fc.array(
    fc.constantFrom("a", "in", "notin", "(", ")", ",", "!", "=", "==", " ", ">"),
  );
  fc.assert(
    fc.property(
      fc.oneof(
        fc.string(),
        text.map((parts) => parts.join("")),
      ),
      (given) => {
        try {
          parseLabelSelector(given);
        } catch (error) {
          assert.ok(error instanceof ApiError);
        }
      },
    ),
    { numRuns: 500 },
  );
});
