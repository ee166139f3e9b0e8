import assert from "node:assert/strict";
import { it } from "node:test";
import { listText } from "./list-text.ts";

it("a list of any length becomes a short text that says how many more there are", () => {
  const names = Array.from({ length: 300 }, (_, index) => `v${index}`);
  assert.equal(listText([]), "");
  assert.equal(listText(names.slice(0, 2)), "v0, v1");
  assert.equal(listText(names.slice(0, 10)), names.slice(0, 10).join(", "));
  assert.equal(listText(names), `${names.slice(0, 10).join(", ")} … and 290 more`);
});
