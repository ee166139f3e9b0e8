import type { Hypervisor, HypervisorSpec } from "../../api/index.ts";
import type { Capability, Failure, HypervisorDriver, Inventory } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import { jsonEqual } from "../../kernel/json.ts";

/** What a Secret holds, as texts. */
export type Credentials = Readonly<Record<string, string>>;

/**
 * Makes the driver of a Hypervisor. It opens nothing by itself; credentials are never kept. Those
 * for unlocking are of another account, and are used for nothing else.
 */
export type Connect = (
  hypervisor: Hypervisor,
  credentials: Credentials | undefined,
  unlockCredentials?: Credentials,
) => HypervisorDriver;

/** A hypervisor that answered, is who it should be, and was looked at whole. */
export interface Connection {
  readonly name: string;
  readonly systemId: string;
  readonly driver: HypervisorDriver;
  readonly spec: HypervisorSpec;
  /** What this hypervisor can do, with the credentials that were given. */
  readonly capabilities: readonly Capability[];
  /** What was seen at the last tick. */
  readonly inventory: Inventory;
  /** Why nothing is written to it; absent: this run acts on it. */
  readonly observeOnly?: Failure | undefined;
}

/** A connection, or why there is none now. */
export type Reach =
  | { readonly is: "ready"; readonly connection: Connection }
  | {
      readonly is: "away";
      readonly failure: Failure;
      /** When it is asked again, by the one who looks after it; absent: when something changes. */
      readonly nextLookMs?: number;
    };

/** What other controllers hear of a hypervisor. */
export interface ConnectionListener {
  /** It can be used again, cannot be used any longer, or its spec is another. */
  readonly changed: (hypervisor: string) => void;
  /** Rows of its inventory are not as they were, by the ids of the machines. */
  readonly rows: (hypervisor: string, externalIds: readonly string[]) => void;
  /** A node or a storage can be used that could not: what failed for the lack of it may not now. */
  readonly improved: (hypervisor: string) => void;
  /** It was doubted, and answers: whoever held back may go on. */
  readonly trusted: (hypervisor: string) => void;
  /** It was looked at whole: whoever is not in it should look for itself. */
  readonly looked: (hypervisor: string, inventory: Inventory) => void;
}

/** The connections of this process. Only the hypervisor controller changes them. */
export class Connections {
  readonly #reaches = new Map<string, Reach>();
  readonly #listeners = new Set<ConnectionListener>();
  readonly #doubted = new Set<string>();
  /** What was last told of each, where it was forgotten since: only what is other is news. */
  readonly #told = new Map<string, Reach>();

  of(name: string): Reach {
    return this.#reaches.get(name) ?? { is: "away", failure: notConnected(name) };
  }

  on(listener: ConnectionListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Whether nobody has looked at it yet. */
  isUntried(name: string): boolean {
    return !this.#reaches.has(name);
  }

  /** Answers stay away. Until it was looked at, nobody should ask it anything. True: it is news. */
  doubt(name: string): boolean {
    const isNews = this.of(name).is === "ready" && !this.#doubted.has(name);
    if (isNews) this.#doubted.add(name);
    return isNews;
  }

  isDoubted(name: string): boolean {
    return this.#doubted.has(name);
  }

  set(name: string, reach: Reach): void {
    const old = this.#takeLast(name);
    this.#reaches.set(name, reach);
    const wasDoubted = this.#doubted.delete(name);
    if (old?.is !== reach.is) return this.#changed(name);
    if (wasDoubted) for (const listener of this.#listeners) listener.trusted(name);
    // Whoever waits for it tells why, and that may have become another reason.
    const isNews = old.is === "away" && reach.is === "away" && !isSameFailure(old, reach);
    if (isNews) return this.#changed(name);
    if (old.is === "ready" && reach.is === "ready") {
      this.#tell(name, old.connection, reach.connection);
    }
  }

  #tell(name: string, old: Connection, connection: Connection): void {
    const { spec, inventory, observeOnly } = connection;
    const isAsBefore = jsonEqual(old.spec, spec) && jsonEqual(old.observeOnly, observeOnly);
    if (!isAsBefore) this.#changed(name);
    const ids = changedRows(old.inventory, inventory);
    const isBetter = isImproved(old.inventory, inventory);
    for (const listener of this.#listeners) {
      if (isBetter) listener.improved(name);
      if (ids.length > 0) listener.rows(name, ids);
      if (guard("looked-at-whole-inventory", inventory.isComplete))
        listener.looked(name, inventory);
    }
  }

  /**
   * After everything was forgotten: connected again by somebody whose turn needs it. What is news
   * is told when it is next looked at, as ever: who is woken by each turn would never rest.
   */
  restore(name: string, reach: Reach): void {
    if (!this.#told.has(name)) return this.set(name, reach);
    this.#reaches.set(name, reach);
  }

  #takeLast(name: string): Reach | undefined {
    const told = this.#told.get(name);
    this.#told.delete(name);
    return told ?? this.#reaches.get(name);
  }

  /** As if nobody had looked at any of them yet. */
  forgetAll(): void {
    for (const [name, reach] of this.#reaches) {
      if (!this.#told.has(name)) this.#told.set(name, reach);
    }
    this.#reaches.clear();
    this.#doubted.clear();
  }

  delete(name: string): void {
    this.#told.delete(name);
    this.#doubted.delete(name);
    if (this.#reaches.delete(name)) this.#changed(name);
  }

  #changed(name: string): void {
    for (const listener of this.#listeners) listener.changed(name);
  }
}

function isSameFailure(left: Reach & { is: "away" }, right: Reach & { is: "away" }): boolean {
  return jsonEqual(left.failure, right.failure);
}

/** Machines that came, went or show another hint. What a partial view lacks is no change. */
export function changedRows(old: Inventory, inventory: Inventory): string[] {
  const before = new Map(old.machines.map((row) => [row.externalId, rowText(row)]));
  const changed: string[] = [];
  for (const row of inventory.machines) {
    if (before.get(row.externalId) !== rowText(row)) changed.push(row.externalId);
    before.delete(row.externalId);
  }
  return guard("absent-rows-of-whole-inventory", inventory.isComplete)
    ? [...changed, ...before.keys()]
    : changed;
}

/** Whether a node became healthy, or a storage usable, or either is new. */
function isImproved(old: Inventory, inventory: Inventory): boolean {
  const before = new Set(usableParts(old));
  return usableParts(inventory).some((part) => !before.has(part));
}

function usableParts({ nodes, storages }: Inventory): string[] {
  const healthy = nodes.filter(({ health }) => health === "Healthy");
  const usable = storages.filter(({ isUsable }) => isUsable);
  return [
    ...healthy.map(({ name }) => `node ${name}`),
    ...usable.map(({ name, node }) => `storage ${name} of ${node}`),
  ];
}

function rowText({ node, kind, power, lock, hint }: Inventory["machines"][number]): string {
  return [node, kind, power, lock ?? "", hint].join("\n");
}

function notConnected(name: string): Failure {
  return {
    category: "DependencyNotReady",
    message: `The Hypervisor ${name} is missing or not connected yet.`,
    remedy: `See berth get hypervisor ${name}. Berth goes on by itself.`,
  };
}
