import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { categoryPolicies, type CategoryPolicy } from "../../hypervisor/index.ts";

const page = new URL("../../../docs/troubleshooting/README.md", import.meta.url);

/** How the page calls each policy, by the beginning of its row. */
function rowOf({ next, attemptsMax }: CategoryPolicy): string {
  if (next === "retry")
    return attemptsMax === Infinity ? "| tried again after" : "| the same, five";
  return { wait: "| waits for what", look: "| looks before", stall: "| a person is needed" }[next];
}

test("the page of all categories says of each what its policy does", () => {
  const rows = readFileSync(page, "utf8").split("\n");
  for (const [category, policy] of Object.entries(categoryPolicies)) {
    const row = rows.find((line) => line.startsWith(rowOf(policy))) ?? "";
    const said = rows.filter((line) => /^\| [a-z]/.test(line) && line.includes(category));
    const policies = said.filter((line) => !line.includes("]("));
    // What only a person can mend is "all others", and named in no row.
    const expected = policy.next === "stall" ? [] : [row];
    assert.deepEqual(policies, expected, category);
  }
});
