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

  it("one whose name it had before it was made is Berth's, on the node where it was asked for", () => {
    const place = { operation: "o", storage: "local-zfs", since: "", listed: [], complete: true };
    const chosen = "vm-114-berth-8f14e45fceea";
    const [volume, earlier] = [`local-zfs:${chosen}`, [`local-zfs:${chosen}`]];
    for (const named of [{ volume }, { earlier }]) {
      const naming = { node: "pve3", allocation: { ...place, ...named, node: "pve2" } };
      assert.equal(isProvable(naming, { backing: "pve2:rpool/data", name: chosen }), true);
      assert.equal(isProvable(naming, { backing: "pve3:rpool/data", name: chosen }), false);
    }
  });

  it("one that it does not name is not, wherever it lies", () => {
    const other = "vm-114-disk-1";
    assert.equal(isProvable(claim, { backing: "pve3:rpool/data", name: other }), false);
    assert.equal(isProvable({ node: "pve3" }, { backing: "pve3:rpool/data", name }), false);
  });
});
