import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import type { Leftover } from "../../hypervisor/index.ts";
import { claim, declared } from "./fixture.ts";
import type { Next, PlanInput } from "./next.ts";
import { planVm } from "./plan.ts";
import { planVmAllocationSettled } from "./plan-leftovers.ts";

const allocation: NonNullable<ClaimSpec["allocation"]> = {
  operation: "op-1",
  node: "n1",
  storage: "store",
  since: "2026-01-02T03:30:00Z",
  listed: [],
  complete: true,
};
const stray: Leftover = {
  volume: "store:vm-100-disk-1",
  storage: "store",
  node: "n1",
  sizeBytes: 1,
  proof: "TaskLogged",
};

/** What is planned where an operation that makes volumes left this. */
function next(
  leftover: Leftover,
  more: Partial<PlanInput> = {},
  of: ClaimSpec = claim,
): Next["do"] | undefined {
  const spec = { ...of, allocation };
  // cast: as much of an input as this plan needs.
  const input = { declared, nowMs: 0, claim: spec, leftovers: [leftover], ...more } as PlanInput;
  return planVmAllocationSettled(input, spec, undefined)?.do;
}

describe("what a failed attempt left", () => {
  it("is removed if the log of our own task names it", () => {
    assert.equal(next(stray), "step");
  });

  it("is not removed if nothing proves that it is ours", () => {
    assert.equal(next({ ...stray, proof: "Unattributed" }), "record");
    assert.equal(next({ ...stray, proof: "Probable" }), "record");
  });

  it("is not removed if it is a disk of the VM, detached or to be kept", () => {
    const disk = { id: stray.volume, role: "Disk", state: "Detached", disk: "data" } as const;
    const volumes = [disk];
    assert.equal(next({ ...stray, proof: "Claimed" }, {}, { ...claim, volumes }), "record");
  });

  it("is not removed while the attempt may still go on", () => {
    const open = { step: "AddDisk", intent: "Add a disk.", key: "k" };
    assert.equal(next(stray, { open }), "wait");
  });

  it("is not forgotten while nobody knows whether it was removed", () => {
    const open = { step: "RemoveVolume", intent: "Remove a volume.", key: "k" };
    assert.equal(next(stray, { open }), "wait", "the next allocation would list it as older");
  });
});

describe("a request for a volume by name", () => {
  const named = { ...allocation, volume: "store:vm-100-berth-1" };
  const open = { step: "AddDisk", intent: "Make the disk data.", key: "k" };
  const machine = { node: "n1", version: "1", power: "Stopped", shape: {}, disks: [], volumes: [] };
  const plan = (of: ClaimSpec, isDeleting: boolean, more: Partial<PlanInput> = {}): Next => {
    const fate = { ...declared, isDeleting, fate: "Destroy" };
    const seen = { at: "ours", machine };
    // cast: as much of a machine as a deletion needs.
    const input = { declared: fate, claim: of, seen, nowMs: 0, leftovers: [], ...more };
    return planVm(input as unknown as PlanInput);
  };

  it("is over before the VM is destroyed: the volume would be made after that", () => {
    const of = { ...claim, volumes: [], allocation: named };
    assert.equal(plan(of, true, { open }).do, "wait");
    assert.notEqual(plan(of, true).do, "wait");
    const settled = { ...named, settledAt: allocation.since };
    assert.notEqual(plan({ ...of, allocation: settled }, true, { open }).do, "wait");
    assert.notEqual(plan({ ...of, allocation }, true, { open }).do, "wait");
  });
});

describe("what a copy that failed left under an id without a VM", () => {
  /** A copy was begun under the id, and what it left was not accounted for. */
  const reserved = { ...claim, state: "Reserved", everExisted: false, volumes: [] } as const;
  const copying: ClaimSpec = { ...reserved, volumes: [], allocation };
  const lock = { state: "Dead", kind: "Clone", detail: "clone" } as const;
  const husk = { at: "opaque", node: "n1", lock } as const;

  for (const seen of [{ at: "absent" } as const, husk]) {
    const plan = (leftovers?: readonly Leftover[], of = copying): Next => {
      return planVm({ declared, claim: of, seen, nowMs: 1000, leftovers });
    };

    if (seen.at === "opaque") {
      it("is looked for when the programs of the dead task are over, not before", () => {
        const nowMs = 1_000_000;
        const after = (endedMs: number): Next["do"] => {
          const dead = { ...husk, lock: { ...lock, endedMs } };
          return planVm({ declared, claim: copying, seen: dead, nowMs, leftovers: [] }).do;
        };
        assert.equal(after(nowMs - 1_000), "wait", "its volume would appear under nobody's id");
        assert.equal(after(nowMs - 31_000), "record");
      });
    }

    it(`is looked for before anything else is done (${seen.at})`, () => {
      assert.equal(plan().do, "sweep");
    });

    it(`is removed where it is provably ours (${seen.at})`, () => {
      const planned = plan([stray]);
      assert.equal(planned.do === "step" && planned.step.name, "RemoveVolume");
    });

    it(`is recorded where it is only probably ours (${seen.at})`, () => {
      const planned = plan([{ ...stray, proof: "Probable" }]);
      const fields = planned.do === "record" ? Object.keys(planned.change) : [];
      assert.deepEqual(fields, ["allocation", "probableVolumes"]);
    });

    it(`is not looked for while the Claim knows volumes of a VM (${seen.at})`, () => {
      const disk = { id: stray.volume, role: "Disk", state: "Detached" } as const;
      const planned = plan([stray], { ...copying, volumes: [disk] });
      assert.notEqual(planned.do === "step" && planned.step.name, "RemoveVolume");
    });
  }
});
