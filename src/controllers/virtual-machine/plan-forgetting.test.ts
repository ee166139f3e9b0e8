import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import type { Failure, Seen } from "../../hypervisor/index.ts";
import type { Next, PlanInput } from "./next.ts";
import { orForget, planVmForgettable } from "./plan-forgetting.ts";

const owner = { namespace: "lab", name: "web", uid: "u" };
const claim = { externalId: "100", owner } as ClaimSpec;
const failure: Failure = { category: "NodeUnhealthy", message: "down", remedy: "See to it." };
const unknown: Seen = { at: "unknown", failure };
const stranger: Seen = { at: "foreign", reason: "Stranger", detail: "no mark" };
const command = "berth forget vm/web -n lab --reason TEXT";

function planned(seen: Seen, isDeleting: boolean, next: Next = { do: "fail", failure }): Next {
  const input = { seen, declared: { isDeleting } } as PlanInput;
  return planVmForgettable(input, claim, next);
}

function remedyOf(next: Next): string | undefined {
  return next.do === "fail" ? next.failure.remedy : undefined;
}

describe("what a person can do about an object that cannot go", () => {
  it("is to forget it, after what else there is to do, where it cannot be seen", () => {
    const remedy = `See to it. If it is gone for good: ${command}`;
    assert.equal(remedyOf(planned(unknown, true)), remedy);
    const { remedy: _none, ...bare } = failure;
    assert.equal(orForget(bare, owner).remedy, `If it is gone for good: ${command}`);
  });

  it("is that alone where something else stands under the id", () => {
    const remedy = `To let the object go and touch nothing that stands there: ${command}`;
    assert.equal(remedyOf(planned(stranger, true)), remedy);
  });

  it("is as it was for an object that stays, and for a machine that is its own", () => {
    assert.equal(remedyOf(planned(unknown, false)), "See to it.");
    assert.equal(remedyOf(planned(stranger, false)), "See to it.");
    assert.equal(remedyOf(planned({ at: "absent" }, true)), "See to it.");
    const finish: Next = { do: "finish", how: "Retire" };
    assert.equal(planned(stranger, true, finish), finish);
  });
});
