import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { annotations } from "../../api/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import type { StatusFailure } from "../failures/index.ts";
import { epochRetryMs, heldLookMs, isGivenUp, judgeFailure, retryWaitMs } from "./attempts.ts";
import { declarationDigest, withFailed, type CountingObject } from "./failed-steps.ts";

const random = { number: () => 0.5, bytes: () => new Uint8Array(), uuid: () => "u" };
const broken = { category: "CreationFailed", message: "no" } as const;

function failedObject(change: Partial<StatusFailure>, meta: object = {}): CountingObject {
  const metadata = { generation: 2, ...meta };
  const failure: StatusFailure = {
    ...broken,
    step: "AddDisk",
    attempts: 1,
    firstAt: formatTime(0),
    lastAt: formatTime(0),
    declaration: declarationDigest({ metadata: { generation: 2 } }),
    ...change,
  };
  return { metadata, status: { failure } };
}

describe("the next retry of a failure", () => {
  const retry = { nextRetryAt: formatTime(60_000) };

  it("is read from the status, so that a restart brings no attempt forward", () => {
    assert.equal(retryWaitMs(failedObject(retry), 10_000), 50_000);
    assert.ok(retryWaitMs(failedObject(retry), 60_000) <= 0);
  });

  it("waits no longer than it said when the clock was set back", () => {
    assert.equal(retryWaitMs(failedObject(retry), -3_600_000), 60_000);
  });

  it("does not hold back another declaration, or a person who asks", () => {
    assert.equal(retryWaitMs(failedObject(retry, { generation: 3 }), 0), 0);
    const asked = { annotations: { [annotations.reconcileAt]: "now" } };
    assert.equal(retryWaitMs(failedObject(retry, asked), 0), 0);
    const deleted = { deletionTimestamp: formatTime(1_000) };
    assert.equal(retryWaitMs(failedObject(retry, deleted), 0), 0);
  });

  it("does not keep what only a person can mend from being observed", () => {
    assert.equal(retryWaitMs(failedObject({ ...retry, category: "PermissionDenied" }), 0), 0);
  });
});

describe("a step that failed as often as it may", () => {
  it("is given up until the declaration changes or a person asks", () => {
    assert.ok(isGivenUp(failedObject({ attempts: 5 })));
    assert.ok(!isGivenUp(failedObject({ attempts: 5 }, { generation: 3 })));
    assert.ok(!isGivenUp(failedObject({ attempts: 4, nextRetryAt: formatTime(9) })));
  });

  it("counts by its step and category, whatever else fails in between", () => {
    let object = failedObject({});
    for (let times = 1; times <= 5; times += 1) {
      const verdict = judgeFailure(object, broken, { step: "AddDisk", random });
      assert.equal(verdict.attempts, times);
      assert.equal(verdict.isStalled, times === 5);
      const failure = { ...object.status?.failure, ...broken, attempts: verdict.attempts };
      const counted = { failure: failure as StatusFailure, tried: "k" };
      const failedSteps = withFailed(object, "AddDisk", counted);
      const { metadata, status } = object;
      object = { metadata, status: { failure: status?.failure, failedSteps } };
    }
  });
});

describe("a look that failed", () => {
  const look = { step: undefined, nextRetryAt: formatTime(60_000) } as never;

  it("is not repeated within ten seconds, and a clock that was set back makes it no longer", () => {
    assert.equal(heldLookMs(failedObject(look), 4_000), 6_000);
    assert.ok(heldLookMs(failedObject(look), 10_000) <= 0);
    assert.equal(heldLookMs(failedObject(look), -3_600_000), 10_000);
  });

  it("does not hold back what failed at a step, or under another declaration", () => {
    assert.equal(heldLookMs(failedObject({ nextRetryAt: formatTime(60_000) }), 0), 0);
    assert.equal(heldLookMs(failedObject(look, { generation: 3 }), 0), 0);
  });
});

describe("a request without a reply", () => {
  it("is sent again by the table of failures, and a look of the same category soon", () => {
    const unknown = { category: "UnknownOutcome", message: "no reply" } as const;
    const delay = (failure: object, attempts: number): number => {
      const failedSteps = [
        { ...unknown, step: "AddDisk", attempts, generation: 2, firstAt: "", lastAt: "" },
      ];
      const object = { metadata: { generation: 2 }, status: { failedSteps } };
      return judgeFailure(object, { ...unknown, ...failure }, { step: "AddDisk", random }).afterMs;
    };
    const resent = [0, 1, 2, 3, 4, 40].map((times) => delay({ isUnanswered: true }, times));
    assert.deepEqual(resent, [30_000, 60_000, 120_000, 300_000, 600_000, 600_000]);
    assert.equal(delay({}, 0), 1_000);
  });
});

it("an epoch that cannot be written is tried again soon, and what only a person mends seldom", () => {
  const delays = [1, 2, 3, 4, 5, 6, 60].map((attempts) => epochRetryMs("NetworkError", attempts));
  assert.deepEqual(delays, [1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 60_000]);
  assert.equal(epochRetryMs("PermissionDenied", 1), 60_000);
});
