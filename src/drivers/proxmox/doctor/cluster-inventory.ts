/**
 * A cluster as far as a rehearsal needs it: what `berth doctor --snapshot` writes and `berth sim
 * proxmox --from` reads. A file of it may be old, or edited by hand; hence the version.
 */
export interface ClusterInventory {
  readonly format: typeof inventoryFormat;
  readonly version: typeof inventoryVersion;
  /** Of Proxmox VE: "9.2.11". */
  readonly release: string;
  readonly cluster: string;
  readonly nodes: readonly ListedNode[];
  readonly storages: readonly ListedStorage[];
  readonly volumes: readonly ListedVolume[];
  readonly machines: readonly ListedMachine[];
  readonly pools: readonly ListedPool[];
  /** What could not be read, for people. */
  readonly missing: readonly string[];
}

export const inventoryFormat = "berth.dev/proxmox-inventory";
export const inventoryVersion = 1;

export interface ListedNode {
  readonly name: string;
  readonly isOnline: boolean;
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly bridges: readonly string[];
}

export interface ListedStorage {
  readonly name: string;
  readonly type: string;
  readonly contents: readonly string[];
  readonly isShared: boolean;
  readonly isDisabled: boolean;
  /** Absent: all nodes have it. */
  readonly nodes?: readonly string[];
  /** On each node; of a shared one, on one of them. */
  readonly spaces: readonly ListedSpace[];
}

export interface ListedSpace {
  readonly node: string;
  readonly totalBytes: number;
  readonly usedBytes: number;
}

export interface ListedVolume {
  readonly storage: string;
  readonly node: string;
  /** Behind the colon of its id. */
  readonly name: string;
  readonly content: string;
  readonly format: string;
  readonly sizeBytes: number;
  /** Where the storage tells it. */
  readonly usedBytes?: number;
}

export interface ListedMachine {
  readonly vmid: number;
  readonly node: string;
  readonly isRunning: boolean;
  readonly pool?: string;
  readonly config: Readonly<Record<string, string>>;
}

export interface ListedPool {
  readonly name: string;
  readonly storages: readonly string[];
}
