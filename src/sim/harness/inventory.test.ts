import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import type { ClusterState, Volume } from "../proxmox/index.ts";
import { smallCluster } from "../proxmox/index.ts";
import { Dice } from "./dice.ts";
import { differences, inventoryOf } from "./inventory.ts";

function cluster(): ClusterState {
  const { random } = Dice.of(1, "inventory");
  const secrets = { password: "p", tokenSecret: "t" };
  const clock = new VirtualClock();
  return smallCluster({ release: "9.2", nodes: ["pve1"], clock, random, ...secrets });
}

function changedBy(change: (state: ClusterState) => void): string[] {
  const state = cluster();
  const before = inventoryOf(state);
  change(state);
  return differences(before, inventoryOf(state));
}

function volume(name: string, more: Partial<Volume> = {}): Volume {
  const sizes = { sizeBytes: 1, usedBytes: 1, createdMs: 0 };
  return { name, content: "iso", format: "iso", ...sizes, ...more };
}

const folder = "pve1:/var/lib/vz";

describe("what is on a cluster beside its machines", () => {
  it("is the same as long as nobody changes it, whatever machines come", () => {
    const own = volume("vm-100-disk-0", { vmid: 100 });
    assert.deepEqual(
      changedBy((state) => state.volumes[folder]?.push(own)),
      [],
    );
  });

  it("has every file that no machine owns", () => {
    const left = changedBy((state) => state.volumes[folder]?.push(volume("iso/berth-seed-1.iso")));
    assert.deepEqual(left, [`+ ${folder}/iso/berth-seed-1.iso`]);
    const gone = changedBy((state) => state.volumes[folder]?.splice(0));
    assert.deepEqual(gone, [`- ${folder}/import/debian-12-generic-amd64.qcow2`]);
  });

  it("has members of pools, and HA", () => {
    const pool = { poolid: "web", vms: [100], storages: [] };
    assert.equal(changedBy((state) => state.pools.push(pool)).length, 2);
    assert.equal(changedBy((state) => (state.ha["vm:100"] = { state: "started" })).length, 2);
  });

  it("says nothing of who watches over a machine that stands", () => {
    const changes = changedBy((state) => {
      state.guests["100"] = { node: "pve1", text: "memory: 16" };
      state.ha["vm:100"] = { state: "started" };
    });
    assert.deepEqual(changes, []);
  });
});
