import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Hypervisor } from "../../api/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { lastFailure, triedWith } from "./last-failure.ts";

type Failure = NonNullable<NonNullable<Hypervisor["status"]>["failure"]>;

const session = { createdFrom: "these endpoints", asked: undefined };
const beganMs = 1_000_500;
const unreached: Failure = {
  category: "NetworkError",
  message: "no answer",
  attempts: 3,
  firstAt: formatTime(1_000_000),
  lastAt: formatTime(1_100_000),
  nextRetryAt: formatTime(1_220_000),
  declaration: triedWith(session) ?? "",
};
const untroubled = { troubles: 0, retryAtMs: 0 };

function last(failure: Failure | undefined, tried: Parameters<typeof lastFailure>[1] = session) {
  // cast: only its status is read.
  return lastFailure({ status: { failure } } as unknown as Hypervisor, tried, beganMs);
}

describe("a process that has forgotten that a hypervisor failed", () => {
  it("goes on counting, and asks no sooner than its status says", () => {
    assert.deepEqual(last(undefined), untroubled);
    assert.deepEqual(last(unreached), { troubles: 3, retryAtMs: 1_220_000 });
  });

  it("leaves one that refuses alone for as long as before", () => {
    const { nextRetryAt: _timed, ...untimed } = unreached;
    const refused: Failure = { ...untimed, category: "PermissionDenied" };
    assert.deepEqual(last(refused), { troubles: 3, retryAtMs: 1_100_000 + 600_000 });
  });

  it("asks at once where the endpoints, the Secret or a person's request is another", () => {
    assert.deepEqual(last(unreached, { ...session, createdFrom: "others" }), untroubled);
    assert.deepEqual(last(unreached, { ...session, asked: "now" }), untroubled);
  });

  it("asks at once where it has just begun", () => {
    assert.deepEqual(last({ ...unreached, lastAt: formatTime(900_000) }), untroubled);
    assert.equal(last({ ...unreached, lastAt: formatTime(beganMs) }).troubles, 3);
  });
});
