import assert from "node:assert/strict";
import { it } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import type { Machine } from "../../hypervisor/index.ts";
import type { PlanInput } from "./next.ts";
import { claimChange, withLeftovers } from "./plan-claim.ts";

it("the Claim names a leftover once, however often it was listed or named before", () => {
  const known = { id: "s:vm-1-disk-0", role: "Disk", state: "Detached" } as const;
  const row = { storage: "s", node: "n1", sizeBytes: 1, proof: "MadeUnderMark" } as const;
  const listed = ["s:vm-1-disk-0", "s:vm-1-disk-1", "s:vm-1-disk-1"];
  const leftovers = listed.map((volume) => ({ ...row, volume }));
  const volumes = withLeftovers({ volumes: [known] } as unknown as ClaimSpec, leftovers);
  assert.deepEqual(
    volumes?.map(({ id }) => id),
    ["s:vm-1-disk-0", "s:vm-1-disk-1"],
  );
});

it("a new disk that gets the name of a renamed one does not take its place as the first", () => {
  const root = { id: "s:vm-1-disk-0", role: "Disk", state: "Attached", disk: "root" } as const;
  const own = { storage: "s", isOwn: true, state: "Attached", role: "Disk" } as const;
  const renamed = { ...own, id: "s:vm-1-disk-6", disk: "root" };
  const data = { ...own, id: root.id, disk: "data" };
  const declared = { onDelete: {}, disks: [], takes: {} };
  // cast: what the change of a Claim is made of.
  const input = { declared, nowMs: 0 } as unknown as PlanInput;
  const claim = { state: "Bound", node: "n1", volumes: [root] } as unknown as ClaimSpec;
  const seen = (volumes: object[]): Machine => ({ node: "n1", volumes }) as unknown as Machine;
  const namesOf = (change: Partial<ClaimSpec> | undefined): unknown => {
    return change?.volumes?.map(({ id, disk }) => [id, disk]);
  };
  const first = claimChange(input, claim, seen([renamed]));
  const both = claimChange(input, { ...claim, ...first }, seen([renamed, data]));
  const order = [
    [renamed.id, "root"],
    [data.id, "data"],
  ];
  assert.deepEqual(namesOf(both), order);
  assert.deepEqual(namesOf(claimChange(input, claim, seen([renamed, data]))), order);
});
