import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Begun, TaskView } from "../../hypervisor/index.ts";
import type { OperationRecord } from "./record.ts";
import { isOpen, outcomeOf, settle, type Evidence, type StepRules } from "./settle.ts";

const record: OperationRecord = {
  version: 1,
  id: "1",
  key: "k",
  step: "Start",
  intent: "Start the VM.",
  attempt: 1,
  since: "2026-01-02T03:04:05Z",
};
const broken = { category: "CreationFailed", message: "no" } as const;
const taken = { category: "IdentityConflict", message: "taken" } as const;

/** What becomes of every answer to a request, while its effect may still arrive and after that. */
const begunTable: Record<Begun["outcome"], { begun: Begun; within: string; after: string }> = {
  done: { begun: { outcome: "done" }, within: "ended Done", after: "ended Done" },
  progressed: {
    begun: { outcome: "progressed" },
    within: "ended Progressed",
    after: "ended Progressed",
  },
  task: { begun: { outcome: "task", task: "t" }, within: "running", after: "running" },
  refused: {
    begun: { outcome: "refused", failure: broken },
    within: "failed Refused",
    after: "failed Refused",
  },
  blocked: {
    begun: { outcome: "blocked", waitsFor: "a lock" },
    within: "blocked Blocked",
    after: "blocked Blocked",
  },
  changed: {
    begun: { outcome: "changed", detail: "" },
    within: "ended Changed",
    after: "ended Changed",
  },
  fenced: { begun: { outcome: "fenced" }, within: "ended Fenced", after: "ended Fenced" },
  unknown: {
    begun: { outcome: "unknown", failure: broken },
    within: "unconfirmed",
    after: "doubtful Abandoned",
  },
};

/** And of every state of a task. */
const taskTable: Record<TaskView["state"], { view: TaskView; within: string; after: string }> = {
  running: { view: { state: "running" }, within: "running", after: "running" },
  succeeded: { view: { state: "succeeded" }, within: "ended Done", after: "ended Done" },
  warned: { view: { state: "warned", cause: "" }, within: "ended Done", after: "ended Done" },
  failed: {
    view: { state: "failed", failure: broken },
    within: "failed Failed",
    after: "failed Failed",
  },
  blocked: {
    view: { state: "blocked", waitsFor: "a lock" },
    within: "blocked Blocked",
    after: "blocked Blocked",
  },
  changed: {
    view: { state: "changed", cause: "" },
    within: "ended Changed",
    after: "ended Changed",
  },
  lost: {
    view: { state: "lost", cause: "killed" },
    within: "doubtful Lost",
    after: "doubtful Lost",
  },
  unknown: { view: { state: "unknown", failure: broken }, within: "unseen", after: "unseen" },
};

function settled(evidence: Evidence, leftMs: number, rules: StepRules = {}): string {
  const settlement = settle(record, evidence, { leftMs, rules });
  return [settlement.is, outcomeOf(settlement)].filter((word) => word !== undefined).join(" ");
}

describe("the table that settles operations", () => {
  for (const [name, { begun, within, after }] of Object.entries(begunTable)) {
    it(`knows what follows from the answer ${name}`, () => {
      assert.equal(settled({ of: "begun", begun }, 1_000), within);
      assert.equal(settled({ of: "begun", begun }, 0), after);
    });
  }

  for (const [name, { view, within, after }] of Object.entries(taskTable)) {
    it(`knows what follows from a task that is ${name}`, () => {
      assert.equal(settled({ of: "task", task: "t", view }, 1_000), within);
      assert.equal(settled({ of: "task", task: "t", view }, 0), after);
    });
  }

  it("keeps an operation open while its effect may still arrive, and no longer", () => {
    assert.equal(settled({ of: "noTask" }, 1), "unconfirmed");
    assert.equal(settled({ of: "noTask" }, 0), "doubtful Abandoned");
    assert.equal(settled({ of: "otherTask" }, 0), "unconfirmed");
    const forgotten: TaskView = { state: "lost", cause: "no such task", mayRun: true };
    assert.equal(settled({ of: "task", task: "t", view: forgotten }, 1), "unconfirmed");
    assert.equal(settled({ of: "task", task: "t", view: forgotten }, 0), "doubtful Lost");
  });

  it("does not call an id taken that its own request may have taken, sent twice", () => {
    const begun: Begun = { outcome: "refused", failure: taken };
    const settlement = settle(
      record,
      { of: "begun", begun },
      { leftMs: 5, rules: { makes: true } },
    );
    assert.deepEqual(settlement, { is: "unconfirmed", leftMs: 5, doubt: taken });
    assert.equal(settled({ of: "begun", begun }, 5), "failed Refused");
  });

  it("does not call it a failure when a guest does not follow", () => {
    const view: TaskView = { state: "failed", failure: broken };
    assert.equal(
      settled({ of: "task", task: "t", view }, 1, { asksGuest: true }),
      "ignored Failed",
    );
  });

  it("says that what nobody could be asked about is open", () => {
    assert.ok(isOpen(settle(record, { of: "unseen", failure: broken }, { leftMs: 0, rules: {} })));
  });
});
