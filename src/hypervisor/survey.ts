import type { Power } from "./machine.ts";
import type { Mark } from "./mark.ts";

/**
 * A look at everything on the hypervisor that Berth may have made, whether or not anything declares
 * it. It judges nothing: whose a thing is follows from its mark and the Claims.
 *
 * While `missing` names anything, what is not in here may be there all the same.
 */
export interface Survey {
  readonly machines: readonly SurveyedMachine[];
  /**
   * Volumes that bear the id of a VM that does not exist, or that is on another node than the
   * storage, and that no VM refers to. A replica, which the VM's own node has too, is not among
   * them.
   */
  readonly volumes: readonly SurveyedVolume[];
  /** Files under names that Berth gives: discs with the data of a first boot, and images. */
  readonly files: readonly SurveyedFile[];
  /** The nodes and storages that were looked at. */
  readonly nodes: readonly string[];
  readonly storages: readonly string[];
  /** What could not be seen, for people. */
  readonly missing: readonly string[];
}

/** `Known`: the caller knows it, so it was not looked into. `Other`: no virtual machine. */
export interface SurveyedMachine {
  readonly externalId: string;
  readonly node: string;
  readonly content: "Known" | "Machine" | "Husk" | "Other";
  readonly name?: string;
  readonly power: Power;
  /** The hypervisor's word for its lock. */
  readonly lock?: string;
  readonly isTemplate?: boolean;
  /** Of what was looked into. */
  readonly identity?: string;
  readonly mark?: Mark;
  readonly sizeBytes?: number;
  /** Files that are in its drives. */
  readonly discs?: readonly string[];
}

export interface SurveyedVolume {
  readonly volume: string;
  /** The id of the machine in its name. */
  readonly externalId: string;
  /** The node of the VM with that id, where that is another one. */
  readonly vmNode?: string;
  readonly storage: string;
  readonly node: string;
  readonly isShared: boolean;
  readonly sizeBytes: number;
  /** Where the storage reports it. */
  readonly createdMs?: number;
}

export interface SurveyedFile {
  readonly volume: string;
  readonly fileName: string;
  readonly use: "Disk" | "Disc";
  readonly storage: string;
  readonly node: string;
  readonly isShared: boolean;
  readonly sizeBytes: number;
  readonly createdMs?: number;
}
