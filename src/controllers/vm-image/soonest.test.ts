import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { again, settled, stalled } from "../../runtime/index.ts";
import { forEach, soonest } from "./soonest.ts";

describe("the outcomes of several places", () => {
  it("are as soon as the first of them", () => {
    assert.deepEqual(soonest([again("Late", 9), stalled("Given up"), again("Early", 3)]), {
      type: "wait",
      reason: "Early",
      afterMs: 3,
    });
    assert.deepEqual(soonest([again("Late", 9), again("Now")]), again("Now"));
    assert.deepEqual(soonest([settled, stalled("Given up")]), stalled("Given up"));
    assert.deepEqual(soonest([]), settled);
  });

  it("are had from all of them, also where one throws", async () => {
    const tried: string[] = [];
    const trying = forEach(["a", "b"], async (place) => {
      tried.push(place);
      if (place === "a") throw new Error("no");
      return settled;
    });
    await assert.rejects(trying, /no/);
    assert.deepEqual(tried, ["a", "b"]);
  });
});
