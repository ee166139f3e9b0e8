import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import type { Machine, SeenHighAvailability } from "../../hypervisor/index.ts";
import type { Declared, Next, PlanInput } from "./next.ts";
import { planVmPower } from "./plan-power.ts";

/** What the plan does with a machine that is off, should run, and is watched over. */
function planned(highAvailability: SeenHighAvailability): Next | undefined {
  const machine = { power: "Stopped", highAvailability } as Machine;
  const input = { declared: { power: "Running" } as Declared } as PlanInput;
  return planVmPower(input, {} as ClaimSpec, { machine, drift: [], now: [], later: [] } as never);
}

describe("a machine that high availability watches over", () => {
  it("is waited for while a request is on its way", () => {
    const next = planned({ requested: "Running", detail: "starting" });
    assert.equal(next?.do, "wait");
  });

  it("fails with the way out once nothing follows requests any more", () => {
    const remedy = "Do this.";
    const next = planned({ requested: "Running", detail: "error", remedy });
    assert.ok(next?.do === "fail");
    assert.equal(next.failure.category, "ConfigurationError");
    assert.equal(next.failure.remedy, remedy);
  });
});
