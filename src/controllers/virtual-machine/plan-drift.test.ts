import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import type { Machine } from "../../hypervisor/index.ts";
import {
  claim as agreedClaim,
  declared as agreed,
  gib,
  machine as standing,
  volume,
} from "./fixture.ts";
import type { Declared, Next } from "./next.ts";
import { planVm } from "./plan.ts";

const declared: Declared = {
  ...agreed,
  shape: { memory: { sizeBytes: gib } },
  pinnedDisks: ["root"],
};

function claimed(sizeBytes: number): ClaimSpec {
  const volumes = (agreedClaim.volumes ?? []).map((one) => ({ ...one, size: String(sizeBytes) }));
  return { ...agreedClaim, volumes };
}

function machineWith(sizeBytes: number): Machine {
  return {
    ...standing,
    shape: declared.shape,
    disks: standing.disks.map((disk) => ({ ...disk, sizeBytes })),
    volumes: standing.volumes.map((one) => ({ ...one, sizeBytes })),
  };
}

/** The Claim, once it was written down what the machine shows. */
function claimOf(machine: Machine, sizeBytes: number): ClaimSpec {
  const claim = claimed(sizeBytes);
  const next = planFor({ driftPolicy: "Ignore" }, machine, claim);
  return next.do === "record" ? Object.assign(claim, next.change) : claim;
}

function planFor(change: Partial<Declared>, machine: Machine, claim = claimed(20 * gib)): Next {
  const seen = { at: "ours", machine } as const;
  return planVm({ declared: { ...declared, ...change }, claim, seen, nowMs: 1000 });
}

const grown = machineWith(20 * gib);
const without: Machine = { ...machineWith(10 * gib), disks: [], volumes: [] };
const detached: Machine = {
  ...without,
  volumes: [{ ...volume, state: "Detached", sizeBytes: 10 * gib, isOwn: true }],
};
const [rootDisk] = grown.disks;
assert.ok(rootDisk);
const moved: Machine = {
  ...machineWith(10 * gib),
  disks: [{ ...rootDisk, sizeBytes: 10 * gib, storage: "other" }],
};

describe("drift that cannot be put back, and that nobody edited", () => {
  const size = { path: "disks[root].size", wanted: "10Gi", seen: "20Gi" };
  const lost = { path: "disks[root]", wanted: { name: "root" }, seen: undefined };
  const storage = { path: "disks[root].storage", wanted: "store", seen: "other" };
  const cases = [
    { reason: "a disk that was grown", machine: grown, sizeBytes: 20 * gib, drift: size },
    { reason: "a disk that was taken away", machine: without, sizeBytes: 10 * gib, drift: lost },
    { reason: "a disk that was detached", machine: detached, sizeBytes: 10 * gib, drift: lost },
    { reason: "a disk that was moved", machine: moved, sizeBytes: 10 * gib, drift: storage },
  ];
  for (const driftPolicy of ["Warn", "Ignore"] as const) {
    for (const { reason, machine, sizeBytes, drift } of cases) {
      it(`${reason} is reported and left so with ${driftPolicy}`, () => {
        const next = planFor({ driftPolicy }, machine, claimOf(machine, sizeBytes));
        assert.deepEqual(next, { do: "rest", drift: [drift], pending: [], isApplied: true });
      });
    }
  }

  it("with Correct a disk that was grown is refused, and what to declare is said", () => {
    const next = planFor({}, grown);
    assert.ok(next.do === "fail");
    assert.deepEqual(next.failure, {
      category: "ReplacementRequired",
      message:
        "Somebody changed this by hand, and it cannot be put back in place: " +
        "spec.disks[root].size (it has 20Gi).",
      remedy: "Declare size: 20Gi for the disk root, or make a new VirtualMachine.",
    });
  });

  for (const driftPolicy of ["Correct", "Warn", "Ignore"] as const) {
    it(`an edit that would shrink a disk is refused with ${driftPolicy}`, () => {
      const next = planFor({ driftPolicy, isEdited: true }, grown);
      assert.ok(next.do === "fail");
      assert.equal(next.failure.category, "ReplacementRequired");
      assert.match(next.failure.message, /^This cannot be changed in place: .*Nothing was applied/);
      assert.equal(
        next.failure.remedy,
        "Declare size: 20Gi for the disk root, or put the fields back, or make a new VirtualMachine.",
      );
    });
  }
});

describe("a disk that cannot shrink says nothing about the power", () => {
  const off: Machine = { ...grown, power: "Stopped" };
  const waiting: Machine = { ...grown, pending: ["cpu.cores"] };
  const stays = { updatePolicy: "PowerOff" } as const;
  const cases = [
    { reason: "what is off and is to run", change: {}, machine: off, next: "Start" },
    { reason: "what runs and is to be off", change: { power: "Stopped" }, next: "Shutdown" },
    {
      reason: "a restart that a person asked for",
      change: { wantsRestart: true },
      next: "Shutdown",
    },
    {
      reason: "no restart for changes that wait",
      change: stays,
      machine: waiting,
      next: undefined,
    },
  ] as const;
  for (const { reason, change, next: wanted, ...one } of cases) {
    for (const isEdited of [true, false]) {
      it(`${reason}${isEdited ? ", after an edit" : ""}`, () => {
        const next = planFor({ ...change, isEdited }, "machine" in one ? one.machine : grown);
        assert.equal(next.do === "step" ? next.step.name : undefined, wanted);
        const said = next.do === "step" ? next.step.intent : JSON.stringify(next);
        assert.match(said, /spec\.disks\[root\]\.size \(it has 20Gi\)/);
      });
    }
  }

  it("both are said where high availability has given up", () => {
    const highAvailability = {
      requested: "Running",
      detail: "error",
      remedy: "Reset it.",
    } as const;
    const next = planFor({}, { ...off, highAvailability });
    assert.ok(next.do === "fail");
    assert.equal(next.failure.category, "ReplacementRequired");
    assert.match(next.failure.message, /^High availability has given up.*cannot be put back/);
    assert.match(next.failure.remedy ?? "", /^Reset it\. Declare size: 20Gi/);
  });
});
