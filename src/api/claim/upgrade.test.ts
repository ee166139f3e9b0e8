import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ClaimSpec } from "./index.ts";
import { currentClaim, isOldClaim } from "./upgrade.ts";

const uuid = "00000000-0000-4000-8000-000000000001";
const claim: ClaimSpec = {
  target: "VM",
  hypervisor: { name: "lab", systemId: "lab-1" },
  externalId: "100",
  idChosenBy: "Berth",
  state: "Bound",
  role: "VM",
  origin: "Created",
  everExisted: false,
  identity: uuid,
  installation: uuid,
  owner: { namespace: "default", name: "web" },
};

describe("a Claim in today's form", () => {
  it("of today is what it is", () => {
    assert.ok(!isOldClaim(claim));
    assert.equal(currentClaim(claim), claim);
  });

  it("has existed where either name says so: the new one has a default", () => {
    const past = (old: Partial<ClaimSpec>): boolean =>
      currentClaim({ ...claim, ...old }).everExisted;
    assert.ok(past({ everStood: true }));
    assert.ok(past({ everStood: false, everExisted: true }));
    assert.ok(!past({ everStood: false }));
  });

  it("keeps what was noted where nothing says on which node it was listed", () => {
    const { driver, otherVolumes } = currentClaim({
      ...claim,
      preflightVolumes: ["far:unlisted", "near:vm-100-disk-0"],
    });
    assert.equal(driver?.data, '{"listedOn":"","unlisted":["far"]}');
    assert.deepEqual(otherVolumes, [{ id: "near:vm-100-disk-0" }]);
    assert.equal(currentClaim({ ...claim, preflightVolumes: [] }).driver, undefined);
  });

  it("has a proof for each volume that 0.1 recorded: without one nothing is destroyed", () => {
    const disk = { id: "near:vm-100-disk-0", role: "Disk", state: "Attached" } as const;
    const old = { ...claim, everStood: true, volumes: [disk] };
    assert.deepEqual(currentClaim(old).volumes, [{ ...disk, proof: "Recorded" }]);
    assert.deepEqual(currentClaim({ ...old, state: "Reserved" }).volumes, [disk]);
    assert.deepEqual(currentClaim({ ...claim, volumes: [disk] }).volumes, [disk]);
  });

  it("does not name a volume twice, and keeps what is known of it", () => {
    const known = { id: "near:vm-100-disk-0", seenAt: "2026-01-01T00:00:00Z" };
    const { otherVolumes } = currentClaim({
      ...claim,
      otherVolumes: [known],
      preflightVolumes: [known.id, known.id],
    });
    assert.deepEqual(otherVolumes, [known]);
  });
});
