import type { Hypervisor } from "../../api/index.ts";
import type { Informer } from "../../client/index.ts";
import type { Inventory, InventoryStorage } from "../../hypervisor/index.ts";
import type { Metrics, SlotView } from "../../runtime/index.ts";
import { Tally } from "./tally.ts";

/** What is connected and who works there, looked up whenever metrics are read. */
export interface Places {
  readonly hypervisors: Pick<Informer<Hypervisor>, "list">;
  /** What was seen of a Hypervisor at the last tick; undefined where it cannot be used. */
  readonly inventoryOf: (hypervisor: string) => Inventory | undefined;
  readonly slots: () => readonly SlotView[];
}

export interface PlaceMetrics {
  /** Shows these until the returned function is called. */
  follow(places: Places): () => void;
}

/** Declared once for a program, whatever terms it has. */
export function placeMetrics(metrics: Metrics): PlaceMetrics {
  const storage = ["hypervisor", "storage", "node"] as const;
  const capacity = metrics.gauge({
    name: "berth_storage_capacity_bytes",
    help: "How much a storage holds in all; of a local one, on each node.",
    labels: storage,
  });
  const used = metrics.gauge({
    name: "berth_storage_used_bytes",
    help: "How much of a storage is used; of a local one, on each node.",
    labels: storage,
  });
  const nodes = metrics.gauge({
    name: "berth_hypervisor_nodes",
    help: "Nodes of a Hypervisor, by health.",
    labels: ["hypervisor", "health"],
  });
  const held = metrics.gauge({
    name: "berth_slots_held",
    help: "Slots that are taken, by what they are of.",
    labels: ["of"],
  });
  const waiting = metrics.gauge({
    name: "berth_slots_waiting",
    help: "Machines that wait for a slot, by what it is of.",
    labels: ["of"],
  });
  const oldest = metrics.gauge({
    name: "berth_slot_wait_oldest_seconds",
    help: "How long the longest has been waiting for a slot.",
    labels: ["of"],
  });
  const show = (places: Places | undefined): void => {
    const tallies = {
      capacity: new Tally(capacity),
      used: new Tally(used),
      nodes: new Tally(nodes),
      held: new Tally(held),
      waiting: new Tally(waiting),
      oldest: new Tally(oldest),
    };
    if (places !== undefined) countPlaces(tallies, places);
    for (const tally of Object.values(tallies)) tally.show();
  };
  return {
    follow: (places) => {
      const end = metrics.beforeReading(() => show(places));
      return () => {
        end();
        show(undefined);
      };
    },
  };
}

interface Tallies {
  readonly capacity: Tally<"hypervisor" | "storage" | "node">;
  readonly used: Tally<"hypervisor" | "storage" | "node">;
  readonly nodes: Tally<"hypervisor" | "health">;
  readonly held: Tally<"of">;
  readonly waiting: Tally<"of">;
  readonly oldest: Tally<"of">;
}

function countPlaces(tallies: Tallies, { hypervisors, inventoryOf, slots }: Places): void {
  for (const { metadata } of hypervisors.list()) {
    const hypervisor = metadata.name ?? "";
    const inventory = inventoryOf(hypervisor);
    if (inventory !== undefined) countInventory(tallies, hypervisor, inventory);
  }
  for (const { name, holders, waiting } of slots()) {
    const of = name.split(" ")[0] ?? "";
    tallies.held.add({ of }, holders.length);
    tallies.waiting.add({ of }, waiting.length);
    for (const { waitedMs } of waiting) tallies.oldest.raise({ of }, waitedMs / 1000);
  }
}

function countInventory(
  tallies: Tallies,
  hypervisor: string,
  { nodes, storages }: Inventory,
): void {
  for (const { health } of nodes) tallies.nodes.add({ hypervisor, health });
  for (const { name, node, isShared, capacityBytes, usedBytes } of countedOnce(storages)) {
    // A storage of one name on each node is as many storages: one that is full fails its node.
    const labels = { hypervisor, storage: name, node: isShared ? "" : node };
    if (capacityBytes !== undefined) tallies.capacity.add(labels, capacityBytes);
    if (usedBytes !== undefined) tallies.used.add(labels, usedBytes);
  }
}

/** A shared storage is listed by each of its nodes, and is one all the same. */
function countedOnce(storages: readonly InventoryStorage[]): InventoryStorage[] {
  const shared = new Set<string>();
  return storages.filter(({ name, isShared }) => {
    if (!isShared) return true;
    if (shared.has(name)) return false;
    shared.add(name);
    return true;
  });
}
