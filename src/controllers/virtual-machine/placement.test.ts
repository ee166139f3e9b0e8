import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { VirtualMachine } from "../../api/index.ts";
import type { Inventory, InventoryNode } from "../../hypervisor/index.ts";
import { chooseNode } from "./placement.ts";
import type { NodeLoad } from "./places.ts";

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

function load(fields: Partial<NodeLoad>): NodeLoad {
  return { machines: 1, cpus: 0, memoryBytes: 0, comingBytes: 0, ...fields };
}

function chosen(
  inventory: Inventory,
  around: Omit<Parameters<typeof chooseNode>[2], "storageDefault">,
): string {
  const answer = chooseNode(machine(), inventory, { storageDefault: undefined, ...around });
  return answer.ok ? answer.value : answer.failure.message;
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

  test("is one that has what the machine is made from, however full", () => {
    const inventory = inventoryOf([node("a", { memoryUsedBytes: 60 * gib }), node("b")]);
    const from = new Set(["a"]);
    assert.equal(chosen(inventory, { from }), "a");
    const around = { storageDefault: undefined, from };
    const answer = chooseNode(machine({ node: "b" }), inventory, around);
    assert.match(answer.ok ? "" : answer.failure.message, /only on a/);
  });

  test("is another when the first was given to machines that do not run there yet", () => {
    const inventory = inventoryOf([node("a"), node("b")]);
    const loads = new Map([["a", load({ comingBytes: 4 * gib, memoryBytes: 4 * gib })]]);
    assert.equal(chosen(inventory, { loads }), "b");
  });

  test("counts what was promised to guests that have not touched it yet", () => {
    const touched = node("a", { memoryUsedBytes: 2 * gib });
    const used = node("b", { memoryUsedBytes: 8 * gib });
    const loads = new Map([["a", load({ memoryBytes: 32 * gib })]]);
    assert.equal(chosen(inventoryOf([touched, used]), { loads }), "b");
  });

  test("is the one with more processors left where memory is the same", () => {
    const inventory = inventoryOf([node("a", { cpus: 8 }), node("b", { cpus: 32 })]);
    assert.equal(chosen(inventory, { needs: { cpus: 4, memoryBytes: gib } }), "b");
  });

  test("is one that has room, before one that has none and more processors", () => {
    const full = node("a", { cpus: 64, memoryUsedBytes: 63 * gib });
    const busy = node("b", { cpus: 8, memoryUsedBytes: 60 * gib });
    const around = { needs: { cpus: 4, memoryBytes: 2 * gib }, loads: new Map() };
    assert.equal(chosen(inventoryOf([full, busy]), around), "b");
  });

  test("is spread evenly, each choice counted before the next", () => {
    const inventory = inventoryOf(["c", "a", "b"].map((name) => node(name, { cpus: 16 })));
    const loads = new Map<string, NodeLoad>();
    const needs = { cpus: 2, memoryBytes: 2 * gib };
    const order: string[] = [];
    for (let index = 0; index < 7; index++) {
      const name = chosen(inventory, { needs, loads });
      order.push(name);
      const machines = (loads.get(name)?.machines ?? 0) + 1;
      const memoryBytes = machines * needs.memoryBytes;
      const taken = { machines, cpus: machines * 2, memoryBytes, comingBytes: memoryBytes };
      loads.set(name, taken);
    }
    assert.deepEqual(order, ["a", "b", "c", "a", "b", "c", "a"]);
  });

  test("stays what a person named, however full it is", () => {
    const inventory = inventoryOf([node("a"), node("b")]);
    const loads = new Map([["a", load({ memoryBytes: 640 * gib })]]);
    const around = { storageDefault: undefined, loads };
    assert.deepEqual(chooseNode(machine({ node: "a" }), inventory, around), {
      ok: true,
      value: "a",
    });
    const away = { never: new Set(["b"]), rather: new Set<string>() };
    assert.equal(chosen(inventory, { loads, away }), "a");
  });

  const down = node("c", { health: "Unhealthy", detail: "595 No route to host" });
  test("is not called wrong for what nobody can see there, as long as it is down", () => {
    const inventory = inventoryOf([node("a"), down]);
    const around = { storageDefault: undefined, from: new Set(["a"]) };
    const categoryAt = (name: string): string | undefined => {
      const choice = chooseNode(machine({ node: name }), inventory, around);
      return choice.ok ? undefined : choice.failure.category;
    };
    assert.equal(categoryAt("c"), "NodeUnhealthy");
    assert.equal(categoryAt("a"), undefined);
  });

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
