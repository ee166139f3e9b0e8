import assert from "node:assert/strict";
import { test } from "node:test";
import { closing, suiteLine } from "./report.ts";
import { allowanceFor, parseAllowedSkips } from "./skips.ts";
import type { Suite, SuiteResult } from "./suite.ts";

const suite: Suite = {
  name: "crash",
  proves: "nothing",
  work: { kind: "command", command: [] },
  minutes: 1,
};

function result(changes: Partial<SuiteResult>): SuiteResult {
  return { passed: 0, failures: [], skips: [], ...changes };
}

function close(changes: Partial<SuiteResult>, strict?: { name: string; reason: string }[]) {
  return closing({ suites: [{ suite, result: result(changes) }] }, strict);
}

test("the last line counts what passed and what failed, and nothing else", () => {
  const failure = { place: "a.test.ts:1", name: "group › fails", detail: "Error: x\n    at y\n" };
  const { lines, failed } = close({ passed: 3, failures: [failure] });
  assert.equal(failed, 1);
  assert.deepEqual(lines, [
    "FAILED crash: group › fails",
    "    a.test.ts:1",
    "    Error: x",
    "        at y",
    "",
    "3 passed, 1 failed",
  ]);
});

test("skips are named with their reason, and are no failure by themselves", () => {
  const { lines, failed } = close({ passed: 1, skips: [{ name: "a", reason: "no moon" }] });
  assert.equal(failed, 0);
  assert.deepEqual(lines, ["Skipped:", "  crash: a: no moon", "", "1 passed, 0 failed"]);
});

test("where real components are required, only what is allowed may be skipped", () => {
  const skips = [
    { name: "a", reason: "no moon" },
    { name: "b", reason: "no sun" },
  ];
  const { lines, failed } = close({ skips }, [{ name: "crash › a", reason: "it is new moon" }]);
  assert.equal(failed, 1);
  assert.equal(lines.at(-1), "0 passed, 1 failed");
  assert.ok(lines.includes("  crash: b: no sun"));
  assert.equal(close({ skips }, [{ name: "crash", reason: "all of it" }]).failed, 0);
});

test("an allowance is for one suite, or for one test of it", () => {
  const allowed = [{ name: "crash › a", reason: "because" }];
  assert.equal(allowanceFor({ suite: "crash", name: "a" }, allowed), "because");
  assert.equal(allowanceFor({ suite: "crash", name: "b" }, allowed), undefined);
  assert.equal(allowanceFor({ suite: "fuzz", name: "a" }, allowed), undefined);
});

test("an allowance without a reason is refused", () => {
  assert.throws(() => parseAllowedSkips('[{ "name": "a" }]'), /"name" and a "reason"/);
  assert.throws(() => parseAllowedSkips('[{ "name": "a", "reason": "why" }]'), /of a sentence/);
  assert.throws(() => parseAllowedSkips("{}"), /must be a list/);
  const entry = { name: "a", reason: "it needs the moon" };
  assert.deepEqual(parseAllowedSkips(JSON.stringify([entry])), [entry]);
});

test("a suite over its budget is told", () => {
  const passed = result({ passed: 2 });
  const line = (tookMs: number): string => suiteLine(suite, passed, { tookMs, providedMs: 0 });
  assert.match(line(61_000), /^crash +2 passed +61\.0 s, over its 1 min$/);
  assert.match(line(59_000), /59\.0 s$/);
});

test("building what a suite needs is told apart, and does not count for its budget", () => {
  const took = { tookMs: 59_000, providedMs: 300_000 };
  const line = suiteLine(suite, result({ passed: 2 }), took);
  assert.match(line, /59\.0 s, after 5\.0 min to provide its needs$/);
});
