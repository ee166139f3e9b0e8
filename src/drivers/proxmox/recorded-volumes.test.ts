import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { isRecorded } from "./recorded-volumes.ts";

const sinceMs = Date.parse("2026-01-02T03:04:05Z");
const known = {
  id: "local:101/vm-101-disk-0.raw",
  role: "Disk",
  state: "Detached",
  size: "5",
  since: "2026-01-02T03:04:05Z",
} as const;

/** Whether a volume is the recorded one that was made so long after that was seen detached. */
function isIt(afterMs: number, aheadMs: number): boolean {
  const createdMs = sinceMs + afterMs + aheadMs;
  return isRecorded(
    known,
    { volume: known.id, content: "images", sizeBytes: 5, createdMs },
    aheadMs,
  );
}

describe("a volume that was recorded when it was detached", () => {
  for (const aheadMs of [-600_000, 0, 600_000]) {
    it(`is told from a later one by a clock that is ${aheadMs} ms ahead`, () => {
      assert.equal(isIt(-10_000, aheadMs), true, "the volume itself");
      assert.equal(isIt(400_000, aheadMs), false, "somebody's new volume of the same name");
    });
  }
});
