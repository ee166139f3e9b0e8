import assert from "node:assert/strict";
import { it } from "node:test";
import type { Failure } from "../../hypervisor/index.ts";
import { keptUntilTold } from "./kept-record.ts";
import type { OperationRecord } from "./record.ts";
import type { Settlement } from "./settle.ts";

const record: OperationRecord = {
  id: "1",
  step: "Start",
  intent: "Start it.",
  attempt: 1,
  since: "2026-01-01T00:00:00Z",
  slots: ["node n1"],
};
const failure: Failure = { category: "CreationFailed", message: "no" };
const failed: Settlement = { is: "failed", outcome: "Failed", failure, task: "t" };

it("keeps the record of an operation that failed until a write tells that it did", () => {
  const resumed = { record, settlement: failed, task: "t" };
  const kept = { ...record, task: "t", slots: [] };
  assert.deepEqual(keptUntilTold(record, resumed, undefined), kept);
  assert.deepEqual(keptUntilTold(record, resumed, "Stop"), kept);
  assert.equal(keptUntilTold(record, resumed, "Start"), undefined);
});

it("keeps the record of an operation that is open, and of another one", () => {
  const running: Settlement = { is: "running", task: "t" };
  assert.equal(keptUntilTold(record, { record, settlement: running }, "Start"), record);
  const other = { record: { ...record, id: "2" }, settlement: failed };
  assert.equal(keptUntilTold(record, other, "Start"), record);
});

it("leaves it to the kind what rests on an operation that ended in another way", () => {
  const done: Settlement = { is: "ended", outcome: "Done" };
  assert.equal(keptUntilTold(record, { record, settlement: done }, undefined), undefined);
});
