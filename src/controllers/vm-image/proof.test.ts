import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { taskTimeSlackMs as slackMs } from "../../hypervisor/index.ts";
import { judgeTime } from "./proof.ts";

const startedMs = 1_000_000;
const endedMs = 1_060_000;

describe("a file of a time", () => {
  const cases = [
    { createdMs: startedMs, is: "proven" },
    { createdMs: endedMs, is: "proven" },
    { createdMs: startedMs - slackMs, is: "proven" },
    { createdMs: endedMs + slackMs, is: "proven" },
    { createdMs: startedMs - slackMs - 1_000, is: "unproven" },
    { createdMs: endedMs + slackMs + 1_000, is: "unproven" },
  ];
  for (const { createdMs, is } of cases) {
    const offMs = createdMs < startedMs + 30_000 ? createdMs - startedMs : createdMs - endedMs;
    const from = createdMs < startedMs + 30_000 ? "start" : "end";
    it(`${offMs} ms from the ${from} of a task is ${is} to be what the task left`, () => {
      assert.equal(judgeTime(createdMs, { startedMs, endedMs }).is, is);
    });
  }

  it("is not proven where nobody knows when the task ran", () => {
    assert.equal(judgeTime(startedMs, undefined).is, "unproven");
  });

  it("is not judged before the end of the task is known", () => {
    assert.equal(judgeTime(startedMs, { startedMs }).is, "open");
  });

  it("is told with what speaks against it", () => {
    const early = judgeTime(startedMs - 60_000, { startedMs, endedMs });
    const late = judgeTime(endedMs + 60_000, { startedMs, endedMs });
    assert.ok(early.is === "unproven" && late.is === "unproven");
    assert.match(early.reason, /before the task/);
    assert.match(late.reason, /after the task/);
  });
});
