import type { Inventory } from "../../hypervisor/index.ts";
import { type NodeStorage, wordsOf } from "./storages.ts";

/** What one call for everything showed last, and what was seen once and hardly ever goes. */
export class Glance {
  #inventory: Inventory | undefined;
  readonly #sights = new Set<string>();

  /** Called with every new sight of the cluster, which the controllers take every few seconds. */
  look(inventory: Inventory): void {
    this.#inventory = inventory;
  }

  /** The storages of a node as they were at the last glance; undefined if it showed none. */
  storagesOf(node: string): readonly NodeStorage[] | undefined {
    const rows = this.#inventory?.storages.filter((storage) => storage.node === node) ?? [];
    if (rows.length === 0) return undefined;
    return rows.map(({ name, type = "", isShared, isUsable, contents, ...space }) => {
      const { capacityBytes, usedBytes } = space;
      const isMeasured = capacityBytes !== undefined && usedBytes !== undefined;
      return {
        name,
        type,
        isShared,
        isUsable,
        contents: wordsOf(contents),
        ...(isMeasured ? { availableBytes: capacityBytes - usedBytes } : {}),
      };
    });
  }

  /** Whether any guest had an id at the last glance; undefined before there was one. */
  hasGuest(externalId: string): boolean | undefined {
    return this.#inventory?.machines.some((machine) => machine.externalId === externalId);
  }

  /**
   * Whether something was seen on a node before: an image, a bridge. If it went since, the work
   * that needs it fails and says so; to ask anew for each machine would cost a call each time.
   */
  hasSeen(node: string, thing: string): boolean {
    return this.#sights.has(`${node} ${thing}`);
  }

  saw(node: string, things: readonly string[]): void {
    if (this.#sights.size > sightsMax) this.#sights.clear();
    for (const thing of things) this.#sights.add(`${node} ${thing}`);
  }
}

/** Far more than a cluster has of bridges and images; a bound all the same. */
const sightsMax = 10_000;
