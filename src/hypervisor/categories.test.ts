import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { failureMeanings } from "../api/index.ts";
import { categoryPolicies } from "./categories.ts";

describe("categories", () => {
  it("have one policy each, and there are no others", () => {
    const names = Object.keys(categoryPolicies).toSorted();
    assert.deepEqual(names, Object.keys(failureMeanings).toSorted());
  });

  it("retry the network and nodes for ever, and a failed creation five times", () => {
    assert.equal(categoryPolicies.NetworkError.attemptsMax, Infinity);
    assert.equal(categoryPolicies.NodeUnhealthy.attemptsMax, Infinity);
    assert.equal(categoryPolicies.CreationFailed.attemptsMax, 5);
    const minutes = categoryPolicies.NetworkError.delaysMs.map((delay) => delay / 60_000);
    assert.deepEqual(minutes, [0.5, 1, 2, 5, 10]);
  });

  it("never retry what only a person can mend", () => {
    for (const [name, { next, attemptsMax }] of Object.entries(categoryPolicies)) {
      assert.equal(next === "stall", attemptsMax === 1, name);
    }
  });

  it("look before anything else where the outcome is unknown", () => {
    assert.equal(categoryPolicies.UnknownOutcome.next, "look");
  });
});
