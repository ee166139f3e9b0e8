import type { Client } from "../client/index.ts";
import type { Clock } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";
import type { LeaderLeaseOptions, Metrics, OutsideTime } from "../runtime/index.ts";
import type { Connect, Place } from "./hypervisor/index.ts";
import type { Web } from "./vm-image/index.ts";

export interface ControllersOptions {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  /** Makes the driver of a Hypervisor: the one place that knows which types there are. */
  readonly connect: Connect;
  /** Where image files come from. Absent: only hypervisors fetch, whatever a URL leads to. */
  readonly web?: Web;
  readonly log: (level: "info" | "warn" | "error", message: string, fields?: object) => void;
  /** Who we are, for people, in the Lease and in Events. */
  readonly identity?: string;
  /** Where this process is: one that runs somewhere else with the same data only observes. */
  readonly place?: Place;
  /** Whether deleting a VirtualMachine may destroy its machine. Absent: always. */
  readonly mayDestroy?: () => Promise<boolean>;
  /** How often hypervisors are looked at, in place of their own spec.limits.pollSeconds. */
  readonly tickMs?: number;
  /** How many VMs are worked on at once. */
  readonly concurrency?: number;
  /** How long requests of an earlier leader may still take effect after its lease. */
  readonly graceMs?: number;
  /** How long the lease lasts, is believed in and is renewed; see `startLeaderLease`. */
  readonly lease?: Pick<LeaderLeaseOptions, "durationMs" | "validMs" | "retryMs">;
  /** Where the controllers report what they do. */
  readonly metrics?: Metrics;
  /** Tells the waits for hypervisors from our own time. */
  readonly outside?: OutsideTime;
  /**
   * Asked before each turn of each controller. Where it says yes, everything that the process
   * remembers is dropped before that turn, as if it had just been started. For tests.
   */
  readonly forgets?: () => boolean;
  /** What a missing Lease means; `trust` where a lock says that there is no other process. */
  readonly whenAbsent?: "wait" | "trust";
}
