import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { describeFailure, failureText } from "./describe-failure.ts";

const failure = { category: "LockError", message: "the machine 5 is locked" } as const;

describe("a failure as a status shows it", () => {
  test("is made of whole sentences, and what to do comes after", () => {
    assert.equal(failureText(failure), "The machine 5 is locked.");
    assert.equal(
      failureText({ ...failure, remedy: "Unlock it." }),
      "The machine 5 is locked. Unlock it.",
    );
    assert.equal(failureText({ message: "Refused!", remedy: "Ask." }), "Refused! Ask.");
    const field = "disks[root]: local:import/a.qcow2 is not there";
    assert.equal(failureText({ message: field }), `${field}.`, "a field keeps its spelling");
  });

  test("keeps its times while it only stands there, so that no look at it is a write", () => {
    const first = describeFailure(failure, { nowMs: 0, old: undefined, attempts: 1 });
    const later = describeFailure(failure, { nowMs: 90_000, old: first, attempts: 1 });
    assert.deepEqual(later, first);
  });

  test("counts on, with the time of the last attempt and of the next one", () => {
    const first = describeFailure(failure, { nowMs: 0, old: undefined, attempts: 1 });
    const moment = { nowMs: 60_000, old: first, attempts: 2, nextRetryMs: 120_000 };
    const second = describeFailure(failure, moment);
    assert.equal(second.firstAt, first.firstAt);
    assert.deepEqual(
      [second.lastAt, second.nextRetryAt],
      ["1970-01-01T00:01:00Z", "1970-01-01T00:02:00Z"],
    );
  });
});
