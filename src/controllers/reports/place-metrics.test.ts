import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { Inventory, InventoryStorage } from "../../hypervisor/index.ts";
import { createMetrics } from "../../runtime/index.ts";
import { placeMetrics } from "./place-metrics.ts";

function storageOf(name: string, node: string, more: Partial<InventoryStorage>): InventoryStorage {
  return { name, node, isShared: false, isUsable: true, contents: ["Disks"], ...more };
}

async function linesOf(storages: readonly InventoryStorage[]): Promise<string[]> {
  const metrics = createMetrics();
  const inventory: Inventory = { isComplete: true, missing: [], nodes: [], machines: [], storages };
  const hypervisor = { metadata: { name: "pve" } };
  placeMetrics(metrics).follow({
    hypervisors: { list: () => [hypervisor] as never },
    inventoryOf: () => inventory,
    slots: () => [],
  });
  const text = await metrics.text();
  return text.split("\n").filter((line) => line.startsWith("berth_storage_"));
}

describe("the metrics of storages", () => {
  test("a local storage is one on each node: a full one is not hidden by an empty one", async () => {
    const lines = await linesOf([
      storageOf("local-zfs", "pve1", { capacityBytes: 100, usedBytes: 99 }),
      storageOf("local-zfs", "pve2", { capacityBytes: 100, usedBytes: 1 }),
    ]);
    const of = 'hypervisor="pve",storage="local-zfs",node';
    assert.deepEqual(lines, [
      `berth_storage_capacity_bytes{${of}="pve1"} 100`,
      `berth_storage_capacity_bytes{${of}="pve2"} 100`,
      `berth_storage_used_bytes{${of}="pve1"} 99`,
      `berth_storage_used_bytes{${of}="pve2"} 1`,
    ]);
  });

  test("a shared storage is one, whichever node lists it", async () => {
    const shared = { isShared: true, capacityBytes: 100, usedBytes: 50 };
    const lines = await linesOf([
      storageOf("nfs", "pve1", shared),
      storageOf("nfs", "pve2", shared),
    ]);
    assert.deepEqual(lines, [
      'berth_storage_capacity_bytes{hypervisor="pve",storage="nfs",node=""} 100',
      'berth_storage_used_bytes{hypervisor="pve",storage="nfs",node=""} 50',
    ]);
  });
});
