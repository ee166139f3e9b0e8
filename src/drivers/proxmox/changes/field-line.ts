import type { Change } from "../../../hypervisor/index.ts";

/**
 * What a field is here, and what it costs to change it. `Own`: it is Berth's own matter, and takes
 * effect with no change of the machine. `Refused`: Proxmox cannot have it.
 */
export interface FieldLine {
  /** Of VirtualMachine.spec. A list's own line covers its key too; `.*` covers everything below. */
  readonly field: string;
  readonly change: Change["class"] | "Own" | "Refused";
  /** What Proxmox does with it, for people. */
  readonly does: string;
  /** Its path in a Difference, where that is another. */
  readonly shape?: string;
  /** On disks of the sata and ide bus, which cannot be changed under a running guest. */
  readonly onSlowBus?: Change["class"];
}
