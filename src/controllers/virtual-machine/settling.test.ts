import assert from "node:assert/strict";
import { test } from "node:test";
import { ofStep } from "./settling.ts";

const since = "2026-01-02T03:04:05Z";

test("what was to go and is missing has to be looked at: it may be gone", () => {
  const missing = { category: "Missing", message: "no such machine" } as const;
  const of = (step: string): string =>
    ofStep(missing, { id: "1", step, intent: "", attempt: 1, since }).category;
  for (const step of ["Destroy", "DestroyKeeper", "ClearHusk"]) {
    assert.equal(of(step), "UnknownOutcome", step);
  }
  assert.equal(of("Start"), "Missing");
});
