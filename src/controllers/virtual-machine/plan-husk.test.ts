import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Seen } from "../../hypervisor/index.ts";
import { declared, reserved } from "./fixture.ts";
import type { PlanInput } from "./next.ts";
import { planVm } from "./plan.ts";

const lock = { kind: "Create", state: "Dead", detail: "create", remedy: "qm unlock 100" } as const;

const sights: Readonly<Record<string, Seen>> = {
  "one whose task is dead": { at: "opaque", node: "n1", lock },
  "one of which nothing proves whose it is": { at: "foreign", reason: "Husk", detail: "no task" },
};

for (const [name, seen] of Object.entries(sights)) {
  describe(`an empty reservation: ${name}`, () => {
    const input: PlanInput = { declared, claim: reserved, seen, nowMs: 0 };

    test("is left for another id while few were", () => {
      const next = planVm({ ...input, husksLeft: 2 });
      assert.equal(next.do === "moveOn" && next.leaves, "Husk");
    });

    test("is the last one where three were left before, and a person is asked", () => {
      const next = planVm({ ...input, husksLeft: 3 });
      assert.equal(next.do === "fail" && next.failure.category, "LockError");
      assert.match(next.do === "fail" ? next.failure.message : "", / 3 ids were given up /);
    });
  });
}

test("a stranger under the id leaves nothing behind: another id is tried, however many were", () => {
  const seen = { at: "foreign", reason: "Stranger", detail: "somebody's" } as const;
  const next = planVm({ declared, claim: reserved, seen, nowMs: 0, husksLeft: 3 });
  assert.equal(next.do === "moveOn" && next.leaves, "Nothing");
});
