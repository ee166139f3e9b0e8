import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { Machine } from "./machine.ts";
import { proposeNames } from "./names.ts";

const disk = { volume: "v", storage: "s", sizeBytes: 1, bus: "scsi" } as const;

const machine: Machine = {
  externalId: "100",
  node: "n1",
  version: "1",
  power: "Stopped",
  isTemplate: false,
  shape: {},
  disks: ["scsi10", "scsi2", "scsi1"].map((slot) => ({ ...disk, slot })),
  networks: [{ slot: "net0" }],
  pending: [],
  volumes: [],
  hasSnapshots: false,
};

describe("names for a machine without a mark", () => {
  it("go to the parts in their order, not in that of a list", () => {
    const names = proposeNames({ disks: [{ name: "root" }, { name: "data" }] }, machine);
    assert.deepEqual(names, { disks: { root: "scsi1", data: "scsi2" }, networks: {} });
  });

  it("that are words for a place mean what sits there", () => {
    const declared = {
      disks: [{ name: "root" }, { name: "scsi1" }],
      networks: [{ name: "lan" }, { name: "dmz" }],
    };
    const names = proposeNames(declared, machine);
    assert.deepEqual(names.disks, { root: "scsi2", scsi1: "scsi1" });
    assert.deepEqual(names.networks, { lan: "net0" });
  });
});
