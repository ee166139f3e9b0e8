import type { Inventory } from "../../hypervisor/index.ts";
import { type ListedVolume, type NodeStorage, type StorageSettings, wordsOf } from "./storages.ts";

/** What one call for everything showed last, and what was seen once and hardly ever goes. */
export class Glance {
  #inventory: Inventory | undefined;
  readonly #sights = new Set<string>();
  /** Sizes of image files since the last glance, by node and volume; undefined: not to be had. */
  readonly #sizes = new Map<string, number | undefined>();
  /** Image files that were listed since the last glance, by node and volume. */
  readonly #files = new Map<string, ListedVolume>();
  /** How the storages are configured, once it was read since the last glance. */
  storageSettings: ReadonlyMap<string, StorageSettings> | undefined;

  /** Called with every new sight of the cluster, which the controllers take every few seconds. */
  look(inventory: Inventory): void {
    this.#inventory = inventory;
    this.#sizes.clear();
    this.#files.clear();
    this.storageSettings = undefined;
  }

  /** What is read once for all disks that are copied from the same file in the same seconds. */
  sizeOf(
    node: string,
    volume: string,
  ): { readonly isKnown: boolean; readonly bytes?: number | undefined } {
    const key = `${node} ${volume}`;
    return { isKnown: this.#sizes.has(key), bytes: this.#sizes.get(key) };
  }

  measured(node: string, volume: string, bytes: number | undefined): void {
    this.#sizes.set(`${node} ${volume}`, bytes);
  }

  /** An image file as it was listed since the last glance. */
  fileOf(node: string, volume: string): ListedVolume | undefined {
    return this.#files.get(`${node} ${volume}`);
  }

  listed(node: string, files: readonly ListedVolume[]): void {
    for (const file of files) this.#files.set(`${node} ${file.volume}`, file);
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
