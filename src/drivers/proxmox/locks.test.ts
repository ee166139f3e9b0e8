import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { judgeLock } from "./locks.ts";
import { parseTask } from "./tasks.ts";

const startS = 0x69573000;
const hex = startS.toString(16).toUpperCase();
const upid = `UPID:pve1:000003E8:018B8636:${hex}:qmcreate:100:berth@pve!berth:`;
const row = { upid, starttime: startS, endtime: startS + 7, status: "unexpected status" };
const place = { externalId: "100", node: "pve1", isHusk: true };

describe("the work behind a lock", () => {
  it("has the same times however the clock of its node was read", () => {
    const judged = [-1_000, 0, 119_000, 120_000].map((aheadMs) => {
      const tasks = parseTask(row, { aheadMs, withinMs: 2_000 });
      return judgeLock("create", { tasks, user: "berth@pve!berth" }, place);
    });
    for (const { state, sinceMs, endedMs } of judged) {
      assert.equal(state, "Dead");
      assert.deepEqual([sinceMs, endedMs], [startS * 1000, (startS + 7) * 1000]);
    }
    assert.deepEqual(
      judged.map(({ aheadMs }) => aheadMs),
      [-1_000, 0, 119_000, 120_000],
    );
  });
});
