import type { Inventory, Operation } from "../../hypervisor/index.ts";

/** Where slots are: a hypervisor, and what was last seen of its storages. */
export interface SlotPlace {
  readonly name: string;
  readonly inventory: Pick<Inventory, "storages">;
}

/** A storage that each node has for itself has slots on each node; one that they share, once. */
export function slotNames(
  { name: hypervisor, inventory }: SlotPlace,
  node: string | undefined,
  storage: string | undefined,
): string[] {
  const names = [`hypervisor ${hypervisor}`];
  if (node !== undefined) names.push(`node ${node} of ${hypervisor}`);
  if (storage === undefined) return names;
  const seen = inventory.storages.find((row) => row.name === storage && row.node === node);
  const isOwn = node !== undefined && seen?.isShared === false;
  return [...names, `storage ${storage}${isOwn ? ` on ${node}` : ""} of ${hypervisor}`];
}

export function nodeOf(operation: Operation): string | undefined {
  return "at" in operation ? operation.at.node : operation.node;
}
