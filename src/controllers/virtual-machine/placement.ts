import type { VirtualMachine } from "../../api/index.ts";
import { answered, failed } from "../../hypervisor/index.ts";
import type { Answer, Inventory, InventoryNode } from "../../hypervisor/index.ts";

/**
 * The node for a new machine: healthy, with the storages that it names, and the most free memory.
 * One that was chosen before stays chosen while it can take the machine.
 */
export function chooseNode(
  { spec, status }: Pick<VirtualMachine, "spec" | "status">,
  inventory: Inventory,
  storageDefault: string | undefined,
): Answer<string> {
  const { node, nodes } = spec.placement ?? {};
  const named = node === undefined ? nodes : [node];
  const allowed = inventory.nodes.filter(({ name }) => named?.includes(name) ?? true);
  const storages = (spec.disks ?? []).map(({ storage }) => storage ?? storageDefault);
  const wanted = new Set(storages.filter((storage) => storage !== undefined));
  const able = allowed.filter(({ name }) => {
    return [...wanted].every((storage) => isUsable(inventory, storage, name));
  });
  const healthy = able.filter(({ health }) => health === "Healthy");
  const before = healthy.find(({ name }) => name === status?.node);
  if (before !== undefined) return answered(before.name);
  const [best] = healthy.toSorted((a, b) => freeBytes(b) - freeBytes(a) || byName(a, b));
  if (best !== undefined) return answered(best.name);
  const category =
    inventory.isComplete && able.length === 0 ? "ConfigurationError" : "NodeUnhealthy";
  const names = named?.join(", ") ?? "all nodes";
  return failed({
    category,
    message: `No node can take the machine: none of ${names} is healthy with ${needed(wanted)}.`,
    remedy: "See the status of the Hypervisor for its nodes and storages.",
  });
}

function needed(storages: ReadonlySet<string>): string {
  return storages.size === 0 ? "room" : `the storages ${[...storages].join(", ")}`;
}

function isUsable({ storages }: Inventory, storage: string, node: string): boolean {
  return storages.some((row) => row.name === storage && row.node === node && row.isUsable);
}

function freeBytes({ memoryBytes = 0, memoryUsedBytes = 0 }: InventoryNode): number {
  return memoryBytes - memoryUsedBytes;
}

function byName(left: InventoryNode, right: InventoryNode): number {
  return left.name < right.name ? -1 : 1;
}
