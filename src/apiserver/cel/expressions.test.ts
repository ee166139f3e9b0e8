import assert from "node:assert/strict";
import { describe, test } from "node:test";
import recorded from "./golden/expressions.json" with { type: "json" };
import { compileExpression } from "./index.ts";
import { formatText } from "./library/format-text.ts";
import { CelList } from "./values.ts";

// Recorded from cel-go 0.22 with the function libraries of Kubernetes 1.32.4: every function of
// theirs, with the values and the errors that they give. Quantities print no value there.
type Outcome = { value: string; type: string } | { error: string };

function outcomeOf(expression: string): { value: string } | { error: string } {
  try {
    const { value } = compileExpression(expression, []).run([], 1_000_000);
    return { value: formatText("%s", CelList.of([value])) };
  } catch (error) {
    assert.ok(error instanceof Error);
    return { error: error.message };
  }
}

describe("expressions come to what cel-go comes to", () => {
  for (const [expression, expected] of recorded as [string, Outcome][]) {
    test(expression, () => {
      const outcome = outcomeOf(expression);
      if ("error" in expected) assert.deepEqual(outcome, expected);
      else assert.deepEqual(outcome, { value: expected.value });
    });
  }
});
