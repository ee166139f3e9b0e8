import type { VirtualMachine } from "../../api/index.ts";
import { answered, failed } from "../../hypervisor/index.ts";
import type { Answer, Failure, Inventory, InventoryNode } from "../../hypervisor/index.ts";
import { noLoad, type Needs, type NodeLoad } from "./places.ts";
import { listText } from "../../kernel/list-text.ts";

/**
 * The node for a new machine: healthy, with the storages that it names, and the most left of its
 * memory and processors once everything runs that was given to it. One that was chosen before stays
 * chosen while it can take the machine.
 */
export function chooseNode(
  { spec, status }: Pick<VirtualMachine, "spec" | "status">,
  inventory: Inventory,
  around: Surroundings,
): Answer<string> {
  const { storageDefault, away = noNeighbours } = around;
  const { node, nodes } = spec.placement ?? {};
  const named = node === undefined ? nodes : [node];
  const among = allowedOf(inventory.nodes, named, around);
  if (!among.ok) return among;
  const allowed = among.value;
  const wanted = storagesOf(spec, storageDefault);
  const able = ableOf(allowed, inventory, wanted);
  const apart = able.filter(({ name }) => !away.rather.has(name));
  const before = status?.node;
  const best = bestOf(apart, around, before) ?? bestOf(able, around, before);
  if (best !== undefined) return answered(best.name);
  return failed(refusalOf({ inventory, allowed, wanted, named: named ?? [] }));
}

/** What is on nodes that are down nobody can tell: that they are is what is wrong then. */
function nowhere(
  among: readonly InventoryNode[],
  from: Surroundings["from"],
): Answer<readonly InventoryNode[]> {
  const isAnyWell = among.some(({ health }) => health === "Healthy");
  return isAnyWell ? failed(elsewhere(from)) : answered(among);
}

/** The nodes that the placement, what it is made from and its neighbours leave. */
function allowedOf(
  nodes: readonly InventoryNode[],
  named: readonly string[] | undefined,
  { away = noNeighbours, from }: Surroundings,
): Answer<readonly InventoryNode[]> {
  const among = nodes.filter(({ name }) => named?.includes(name) ?? true);
  const near = among.filter(({ name }) => from?.has(name) ?? true);
  if (near.length === 0 && among.length > 0) return nowhere(among, from);
  const allowed = near.filter(({ name }) => !away.never.has(name));
  if (allowed.length === 0 && near.length > 0) return failed(tooClose(away.never));
  return answered(allowed);
}

function storagesOf({ disks = [] }: VirtualMachine["spec"], fallback?: string): string[] {
  const storages = disks.map(({ storage }) => storage ?? fallback);
  return [...new Set(storages.filter((storage) => storage !== undefined))];
}

function ableOf(
  nodes: readonly InventoryNode[],
  inventory: Inventory,
  storages: readonly string[],
): InventoryNode[] {
  return nodes.filter(({ name, health }) => {
    return health === "Healthy" && storages.every((storage) => isUsable(inventory, storage, name));
  });
}

/** Nodes with machines that this one should keep away from. */
export interface Neighbours {
  readonly never: ReadonlySet<string>;
  readonly rather: ReadonlySet<string>;
}

interface Surroundings {
  readonly storageDefault: string | undefined;
  readonly away?: Neighbours | undefined;
  /** The nodes that have what the machine is made from, where not all do. */
  readonly from?: ReadonlySet<string> | undefined;
  /** What the machine takes, and what others take of each node that is not free of them. */
  readonly needs?: Needs;
  readonly loads?: ReadonlyMap<string, NodeLoad>;
}

const noNeighbours: Neighbours = { never: new Set(), rather: new Set() };

function bestOf(
  nodes: readonly InventoryNode[],
  around: Surroundings,
  before?: string,
): InventoryNode | undefined {
  const known = nodes.find(({ name }) => name === before);
  if (known !== undefined) return known;
  const weighed = nodes.map((node) => ({ node, ...weigh(node, around) }));
  return weighed.toSorted(byFreedom)[0]?.node;
}

interface Weight {
  readonly node: InventoryNode;
  readonly isTooFull: boolean;
  /** How much of it would be taken, on average of memory and processors. */
  readonly share: number;
  readonly machines: number;
}

/**
 * Memory is taken by what is seen to be used and what is still to come, or by all that was
 * promised, whichever is more: a guest that has just begun has not touched most of its memory yet.
 */
function weigh(
  { name, cpus = 0, memoryBytes = 0, memoryUsedBytes = 0 }: InventoryNode,
  { needs, loads }: Surroundings,
): Omit<Weight, "node"> {
  const load = loads?.get(name) ?? noLoad;
  const takenBytes = Math.max(memoryUsedBytes + load.comingBytes, load.memoryBytes);
  const memory = takenBytes + (needs?.memoryBytes ?? 0);
  const processors = load.cpus + (needs?.cpus ?? 0);
  return {
    isTooFull: memory > memoryBytes,
    share: (shareOf(memory, memoryBytes) + shareOf(processors, cpus)) / 2,
    machines: load.machines,
  };
}

/** Of what nobody knows the size of, nothing is free. */
function shareOf(taken: number, whole: number): number {
  return whole > 0 ? taken / whole : 1;
}

/** What has no room is taken only where nothing else is left, as people do who overcommit. */
function byFreedom(left: Weight, right: Weight): number {
  return (
    Number(left.isTooFull) - Number(right.isTooFull) ||
    left.share - right.share ||
    left.machines - right.machines ||
    byName(left.node, right.node)
  );
}

function elsewhere(nodes: ReadonlySet<string> = new Set()): Failure {
  return {
    category: "ConfigurationError",
    message: `What the machine is made from is only on ${listText([...nodes])}.`,
    remedy: "Let spec.placement allow that node, or bring the source to a storage that all share.",
  };
}

function tooClose(nodes: ReadonlySet<string>): Failure {
  return {
    category: "NodeUnhealthy",
    message: `Machines to keep away from run on every node: ${listText([...nodes])}.`,
    remedy: "Move one of them, or set policy: Preferred in spec.placement.awayFrom.",
  };
}

interface Choice {
  readonly inventory: Inventory;
  /** The nodes that there are of those that are named. */
  readonly allowed: readonly InventoryNode[];
  readonly wanted: readonly string[];
  readonly named: readonly string[];
}

/** Why no node can take it: there is none, it lacks a storage, or it is not well. */
function refusalOf({ inventory, allowed, wanted, named }: Choice): Failure {
  const { nodes, storages, isComplete, missing } = inventory;
  if (allowed.length === 0 && named.length > 0 && isComplete) {
    return {
      category: "ConfigurationError",
      message: `There is no node ${listText(named)}.`,
      remedy: `Correct spec.placement. The nodes are: ${namesOf(nodes)}.`,
    };
  }
  const isListed = (storage: string): boolean => {
    return storages.some((row) => row.name === storage && isAmong(allowed, row.node));
  };
  const absent = wanted.filter((storage) => !isListed(storage));
  if (absent.length > 0) {
    const unseen = isComplete ? "" : ` Not asked: ${listText(missing)}.`;
    const known = listText([...new Set(storages.map(({ name }) => name))].toSorted());
    return {
      category: isComplete ? "ConfigurationError" : "NodeUnhealthy",
      message: `No node that may take the machine has the storage ${listText(absent)}.${unseen}`,
      remedy: `Correct spec.disks[].storage, or make it there. The storages are: ${known}.`,
    };
  }
  return notWell(inventory, allowed, wanted);
}

function notWell(
  inventory: Inventory,
  allowed: readonly InventoryNode[],
  wanted: readonly string[],
): Failure {
  const ill = allowed.filter(({ health }) => health !== "Healthy");
  const causes = ill.flatMap(({ name, detail }) => (detail ? [`${name}: ${detail}`] : []));
  const well = allowed.filter(({ health }) => health === "Healthy");
  const unusable = wanted.filter((storage) => {
    return well.every(({ name }) => !isUsable(inventory, storage, name));
  });
  const parts = [
    ...(ill.length > 0 ? [`not healthy: ${namesOf(ill)}`] : []),
    ...(well.length > 0 ? [`on ${namesOf(well)} not available: ${listText(unusable)}`] : []),
  ];
  return {
    category: "NodeUnhealthy",
    message: `No node can take the machine now (${parts.join("; ") || "none was seen"}).`,
    ...(causes.length > 0 ? { cause: listText(causes, "; ") } : {}),
    remedy: "See to the node or its storage on the hypervisor. Berth goes on by itself.",
  };
}

function isAmong(nodes: readonly InventoryNode[], node: string): boolean {
  return nodes.some(({ name }) => name === node);
}

function namesOf(nodes: readonly InventoryNode[]): string {
  return listText(nodes.map(({ name }) => name));
}

function isUsable({ storages }: Inventory, storage: string, node: string): boolean {
  return storages.some((row) => row.name === storage && row.node === node && row.isUsable);
}

function byName(left: InventoryNode, right: InventoryNode): number {
  return left.name < right.name ? -1 : 1;
}
