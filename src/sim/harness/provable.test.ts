import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import { isProvable } from "./provable.ts";

const claim: Pick<ClaimSpec, "node" | "volumes"> = {
  node: "pve3",
  volumes: [{ id: "local-zfs:vm-114-disk-0", role: "Disk", state: "Attached" }],
};
const name = "vm-114-disk-0";

describe("what a Claim proves of a volume whose machine is gone", () => {
  it("one that it names, on the node that it names, is Berth's", () => {
    assert.equal(isProvable(claim, { backing: "pve3:rpool/data", name }), true);
  });

  it("one of that name on another node is not: the machine was moved and never seen there", () => {
    assert.equal(isProvable(claim, { backing: "pve2:rpool/data", name }), false);
  });

  it("one that every node sees is Berth's wherever the machine was", () => {
    assert.equal(isProvable(claim, { backing: "shared:192.0.2.2:/export/shared", name }), true);
  });

  it("one that it does not name is not, wherever it lies", () => {
    const other = "vm-114-disk-1";
    assert.equal(isProvable(claim, { backing: "pve3:rpool/data", name: other }), false);
    assert.equal(isProvable({ node: "pve3" }, { backing: "pve3:rpool/data", name }), false);
  });
});
