import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ClaimSpec } from "../../api/index.ts";
import type { Draft, Machine, NewDisk, Shape } from "../../hypervisor/index.ts";
import { additionsOf } from "./additions.ts";
import { claim as stood, gib, machine as standing } from "./fixture.ts";

const root: NewDisk = diskOf("root", "store");

function diskOf(name: string, storage: string): NewDisk {
  return { name, storage, sizeBytes: 10 * gib, fill: { from: "blank" } };
}

const claim: ClaimSpec = {
  ...stood,
  volumes: [
    { id: "store:root", role: "Disk", disk: "root", storage: "store", state: "Attached" },
    { id: "store:old", role: "Disk", disk: "old", storage: "store", state: "Detached" },
  ],
};

const machine: Machine = {
  ...standing,
  node: "n2",
  shape: { networks: [{ name: "lan", network: "vmbr0" }] },
};

function added(
  disks: readonly NewDisk[],
  { shape = {}, pinnedDisks = [] }: { shape?: Shape; pinnedDisks?: readonly string[] } = {},
): Draft | undefined {
  return additionsOf({ shape, disks, pinnedDisks }, { claim, machine, kept: ["kept"] });
}

describe("what an edit adds to a machine that stands", () => {
  it("is nothing where disks and cards are as they were, of whatever size or speed", () => {
    const networks = [{ name: "lan", network: "vmbr0", vlan: 5 }];
    assert.equal(added([{ ...root, sizeBytes: 20 * gib }], { shape: { networks } }), undefined);
  });

  it("is nothing where a disk comes back that was detached, or that is kept for it", () => {
    assert.equal(added([root, diskOf("old", "store"), diskOf("kept", "store")]), undefined);
  });

  it("is a disk that is not there, on the node that the machine is on now", () => {
    const data = diskOf("data", "tank");
    const draft = { claim, node: "n2", shape: {}, disks: [data], isAddition: true };
    assert.deepEqual(added([root, data]), draft);
  });

  it("is the storage that a disk is to be moved to, where its entry itself names it", () => {
    const moving = diskOf("root", "tank");
    assert.equal(added([moving]), undefined, "a default that changed moves nothing");
    const { disks } = added([moving], { pinnedDisks: ["root"] }) ?? {};
    assert.deepEqual(disks, [{ name: "root", storage: "tank", fill: { from: "blank" } }]);
  });

  it("is a new card, and one that comes onto another network", () => {
    const cards = [
      { name: "lan", network: "vmbr7" },
      { name: "dmz", network: "vmbr0" },
    ];
    const { shape, disks } = added([root], { shape: { networks: cards } }) ?? {};
    assert.deepEqual([shape, disks], [{ networks: cards }, []]);
  });
});
