import type { Failure } from "./categories.ts";
import type { ListedEpoch } from "./epoch.ts";
import type { LockKind, Power } from "./machine.ts";

/** The system behind the connection. */
export interface SystemView {
  /** The system's own identity, which no other has and no restart changes. */
  readonly systemId: string;
  readonly version: string;
  readonly capabilities: readonly Capability[];
  /** Rights that the credentials lack, and other things that a person should mend. */
  readonly findings: readonly Failure[];
}

export type Capability =
  | "CreateBlank"
  | "ImportFromImage"
  | "FullClone"
  | "LinkedClone"
  | "FetchImage"
  | "GrowDisk"
  | "CloudInit"
  | "Snapshot"
  | "LiveMigration"
  | "MoveDisk"
  | "TransferDisk"
  | "Firmware"
  | "SeedDisc"
  | "Suspend"
  | "Devices"
  | "HighAvailability"
  /** Locks of ours that are dead can be cleared. */
  | "Unlock";

/**
 * One glance at everything. A row that is missing says nothing while `isComplete` is false, and
 * even otherwise a single machine is only gone when `observe` has proven it.
 */
export interface Inventory {
  readonly machines: readonly InventoryMachine[];
  readonly nodes: readonly InventoryNode[];
  readonly storages: readonly InventoryStorage[];
  readonly isComplete: boolean;
  /** What could not be seen, for people. */
  readonly missing: readonly string[];
  /** The newest epoch of each installation. Absent: this list does not show epochs. */
  readonly epochs?: readonly ListedEpoch[];
}

export interface InventoryMachine {
  readonly externalId: string;
  readonly node: string;
  readonly kind: "Machine" | "Template" | "Other";
  readonly name?: string;
  /** May lag behind. Unknown where the hypervisor does not know it yet. */
  readonly power: Power;
  readonly lock?: LockKind;
  /** The pool that it is in. */
  readonly pool?: string;
  /** Changes when something of the machine changed that a glance can show: then look closer. */
  readonly hint: string;
}

export interface InventoryNode {
  readonly name: string;
  readonly health: "Healthy" | "Unhealthy" | "Unknown";
  readonly cpus?: number;
  readonly memoryBytes?: number;
  readonly memoryUsedBytes?: number;
  readonly detail?: string;
}

export interface InventoryStorage {
  readonly name: string;
  readonly node: string;
  readonly type?: string;
  readonly isShared: boolean;
  readonly isUsable: boolean;
  readonly contents: readonly StorageContent[];
  readonly capacityBytes?: number;
  readonly usedBytes?: number;
}

export type StorageContent = "Disks" | "Images" | "ISOs" | "Snippets" | "Backups";
