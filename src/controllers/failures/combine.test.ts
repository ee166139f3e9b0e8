import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { categoryPolicies, severities } from "../../hypervisor/index.ts";
import { combined } from "./combine.ts";

describe("several failures in one", () => {
  test("one alone is told as it is", () => {
    const failure = { category: "LockError", message: "the machine 5 is locked" } as const;
    assert.equal(combined([failure, failure]), failure);
  });

  test("each has its number and its remedy, the most severe comes first and decides", () => {
    const failure = combined([
      { category: "NodeUnhealthy", message: "the node is down" },
      { category: "ImageNotFound", message: "There is no image.", remedy: "Bring it" },
      { category: "ConfigurationError", message: "no such bridge", remedy: "Name one." },
    ]);
    assert.deepEqual(failure, {
      category: "ConfigurationError",
      message:
        "3 things are wrong: (1) no such bridge. (2) There is no image. (3) the node is down.",
      remedy: "(1) Name one. (2) Bring it.",
    });
  });

  test("several that are on their way are waited for; one that is not makes it a failure", () => {
    const coming = { category: "DependencyNotReady", message: "a", isUnderWay: true } as const;
    const also = { ...coming, message: "b" };
    assert.equal(combined([coming, also]).message, "2 things are waited for: (1) a. (2) b.");
    assert.equal(combined([coming, also]).isUnderWay, true);
    const missing = { category: "DependencyNotReady", message: "c" } as const;
    assert.equal(combined([coming, missing]).isUnderWay, undefined);
  });

  test("the order knows every category, and puts what a person has to mend first", () => {
    assert.deepEqual(severities.toSorted(), Object.keys(categoryPolicies).toSorted());
    const nexts = severities.map((category) => categoryPolicies[category].next);
    assert.equal(nexts.lastIndexOf("stall") < nexts.indexOf("wait"), true);
    assert.equal(nexts.lastIndexOf("wait") < nexts.indexOf("retry"), true);
  });
});
