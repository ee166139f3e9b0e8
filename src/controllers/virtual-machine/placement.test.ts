import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { VirtualMachine } from "../../api/index.ts";
import type { Inventory, InventoryNode } from "../../hypervisor/index.ts";
import { chooseNode } from "./placement.ts";

const gib = 1024 ** 3;

function node(name: string, fields: Partial<InventoryNode> = {}): InventoryNode {
  return { name, health: "Healthy", memoryBytes: 64 * gib, memoryUsedBytes: 0, ...fields };
}

function inventoryOf(nodes: readonly InventoryNode[], unusable: readonly string[] = []): Inventory {
  const ill = nodes.filter(({ health }) => health !== "Healthy").map(({ name }) => name);
  const storages = nodes.map(({ name }) => ({
    name: "fast",
    node: name,
    isShared: false,
    isUsable: !ill.includes(name) && !unusable.includes(name),
    contents: ["Disks"] as const,
  }));
  const missing = ill.map((name) => `the node ${name}`);
  return { machines: [], nodes, storages, isComplete: ill.length === 0, missing };
}

function machine(placement: object = {}, storage = "fast"): Pick<VirtualMachine, "spec"> {
  const spec = { placement, disks: [{ name: "root", storage }] };
  // cast: only these parts of a spec matter to where it goes.
  return { spec: spec as unknown as VirtualMachine["spec"] };
}

describe("the node for a new machine", () => {
  test("is the healthy one with the most free memory that has its storages", () => {
    const full = node("a", { memoryUsedBytes: 60 * gib });
    const inventory = inventoryOf([full, node("b"), node("c"), node("d")], ["b"]);
    assert.deepEqual(chooseNode(machine(), inventory, { storageDefault: undefined }), {
      ok: true,
      value: "c",
    });
  });

  test("is the one that was chosen before, while that can take it", () => {
    const inventory = inventoryOf([node("a"), node("b")]);
    const before = { ...machine(), status: { node: "b" } };
    assert.deepEqual(chooseNode(before, inventory, { storageDefault: undefined }), {
      ok: true,
      value: "b",
    });
  });

  const down = node("c", { health: "Unhealthy", detail: "595 No route to host" });
  const refusals = [
    {
      reason: "a node that is not there",
      vm: machine({ node: "x" }),
      inventory: inventoryOf([node("a"), node("b")]),
      category: "ConfigurationError",
      says: /^There is no node x\.$/,
      todo: /The nodes are: a, b\./,
    },
    {
      reason: "a storage that is nowhere",
      vm: machine({}, "slow"),
      inventory: inventoryOf([node("a")]),
      category: "ConfigurationError",
      says: /has the storage slow\.$/,
      todo: /The storages are: fast\./,
    },
    {
      reason: "a storage that an unseen node may have",
      vm: machine({}, "slow"),
      inventory: inventoryOf([node("a"), down]),
      category: "NodeUnhealthy",
      says: /has the storage slow\. Not asked: the node c\.$/,
      todo: /The storages are: fast\./,
    },
    {
      reason: "a node that is down",
      vm: machine({ node: "c" }),
      inventory: inventoryOf([node("a"), down]),
      category: "NodeUnhealthy",
      says: /\(not healthy: c\)/,
      todo: /See to the node/,
    },
    {
      reason: "a storage that is not available",
      vm: machine({ node: "a" }),
      inventory: inventoryOf([node("a")], ["a"]),
      category: "NodeUnhealthy",
      says: /\(on a not available: fast\)/,
      todo: /its storage/,
    },
  ] as const;
  for (const { reason, vm, inventory, category, says, todo } of refusals) {
    test(`is refused for ${reason}`, () => {
      const answer = chooseNode(vm, inventory, { storageDefault: undefined });
      assert.ok(!answer.ok);
      assert.equal(answer.failure.category, category);
      assert.match(answer.failure.message, says);
      assert.match(answer.failure.remedy ?? "", todo);
    });
  }

  test("tells in the node's own words why it is not healthy", () => {
    const answer = chooseNode(machine({ node: "c" }), inventoryOf([node("a"), down]), {
      storageDefault: undefined,
    });
    assert.equal(answer.ok ? "" : answer.failure.cause, "c: 595 No route to host");
  });
});
