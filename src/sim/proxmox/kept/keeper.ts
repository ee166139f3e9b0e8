import type { Cluster, Touched } from "../cluster.ts";
import { DataFile } from "./data-file.ts";
import { KeptState } from "./kept-state.ts";

/** Keeps the state of a cluster in a file. */
export interface Keeper {
  /** Brings what has changed to the file; it is there when this returns. */
  save(): void;
  /** The same, unless nothing can have changed by the cluster's own doing. */
  saveChanges(): void;
  /** Nothing is saved any more. */
  close(): void;
}

/** Without a path nothing is kept. `beside` is what is in the file besides the state. */
export function keeperOf(
  path: string | undefined,
  beside: object,
  clusterNow: () => Cluster,
): Keeper {
  return path === undefined ? noKeeper : new FileKeeper(path, beside, clusterNow);
}

const noKeeper: Keeper = {
  save: () => undefined,
  saveChanges: () => undefined,
  close: () => undefined,
};

class FileKeeper implements Keeper {
  readonly #file: DataFile;
  readonly #beside: object;
  /** It may become another one: a test hook begins anew. */
  readonly #clusterNow: () => Cluster;
  #kept: KeptState | undefined;
  #activity = -1;
  #isClosed = false;

  constructor(path: string, beside: object, clusterNow: () => Cluster) {
    this.#file = new DataFile(path);
    this.#beside = beside;
    this.#clusterNow = clusterNow;
  }

  save(): void {
    this.#save(undefined);
  }

  saveChanges(): void {
    const { state, activity, touched } = this.#clusterNow();
    if (this.#kept?.state !== state || this.#activity !== activity) this.#save(touched);
  }

  #save(touched: Touched | undefined): void {
    // After the end the file may be somebody else's.
    if (this.#isClosed) return;
    const cluster = this.#clusterNow();
    const { state, activity } = cluster;
    const kept = this.#kept;
    if (this.#file.isAppendable && kept?.state === state && kept.isComparable) {
      const changes = kept.changes(touched);
      if (changes.length > 0) this.#file.append(changes);
    } else {
      this.#file.write({ ...this.#beside, state });
      this.#kept = new KeptState(state, ["state"]);
    }
    this.#activity = activity;
    cluster.touched.guests.clear();
    if (!cluster.processes.isQuiet) return;
    // Before, somebody could have had a volume or a machine in hand, and changed it later.
    cluster.touched.machines.clear();
    cluster.touched.backings.clear();
  }

  close(): void {
    this.#isClosed = true;
    this.#file.close();
  }
}
