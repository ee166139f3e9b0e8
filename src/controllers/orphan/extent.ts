import type { Inventory } from "../../hypervisor/index.ts";

/** How much there is: what the next look is compared with. */
export interface Extent {
  readonly machines: readonly string[];
  readonly nodes: readonly string[];
  readonly storages: readonly string[];
  /** Machines that Claims hold: what Berth takes away is no surprise. */
  readonly held: readonly string[];
}

/** A few that go at once are an ordinary day. */
const machinesLeast = 2;

/**
 * The list may be a little old: what Berth has let go or taken away meanwhile still stands in it,
 * and counts no more.
 */
export function extentOf(
  { machines, nodes, storages }: Inventory,
  { held, left }: { readonly held: readonly string[]; readonly left: readonly string[] },
): Extent {
  const gone = new Set(left);
  const names = storages.map(({ name, node, isShared }) =>
    isShared ? name : `${name} on ${node}`,
  );
  return {
    machines: machines.map(({ externalId }) => externalId).filter((id) => !gone.has(id)),
    nodes: nodes.map(({ name }) => name),
    storages: [...new Set(names)],
    held,
  };
}

/**
 * What is suddenly not there any more, for people; empty where nothing is suspicious: a node or a
 * storage, or more than half of the machines. Those that Berth itself took away do not count. Pure.
 */
export function planSuspicion(before: Extent, now: Extent): string[] {
  const taken = new Set(missingFrom(now.held, before.held));
  const gone = missingFrom(now.machines, before.machines).filter((id) => !taken.has(id));
  const isHalf = gone.length >= machinesLeast && gone.length * 2 > before.machines.length;
  return [
    ...missingFrom(now.nodes, before.nodes).map((name) => `the node ${name}`),
    ...missingFrom(now.storages, before.storages).map((name) => `the storage ${name}`),
    ...(isHalf ? [`${gone.length} of ${before.machines.length} machines`] : []),
  ];
}

/**
 * Whether most of what the ledger holds has lost its object at once. Then what is wrong is more
 * likely here than there: kinds that were deleted, or finalizers that somebody removed.
 */
export function isLedgerStranded(held: number, stranded: number): boolean {
  return stranded >= machinesLeast && stranded * 2 > held;
}

/** Those of before that are not among those of now. */
export function missingFrom(now: readonly string[], before: readonly string[]): string[] {
  const there = new Set(now);
  return before.filter((name) => !there.has(name));
}
