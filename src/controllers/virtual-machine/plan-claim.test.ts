import assert from "node:assert/strict";
import { it } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import { withLeftovers } from "./plan-claim.ts";

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
