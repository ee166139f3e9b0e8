import type {
  Hypervisor,
  VirtualMachine,
  VMClass,
  VMImageSpec,
  VMNetwork,
} from "../../api/index.ts";
import type { Fill } from "../../hypervisor/index.ts";
import type { Seed } from "./seed.ts";

/** Everything that a VM's shape is made of. */
export interface Declaration {
  readonly vm: VirtualMachine;
  readonly hypervisor: Pick<Hypervisor, "metadata" | "spec">;
  readonly vmClass?: VMClass | undefined;
  readonly networks: ReadonlyMap<string, VMNetwork>;
  /** What fills the disks that the source names. */
  readonly fills: ReadonlyMap<string, Fill>;
  /** What lies in the CD drives that name a VMImage, by the drives' names. */
  readonly discs: ReadonlyMap<string, string>;
  /** What runs in it, where only its image says so. */
  readonly guestOs?: VMImageSpec["guestOs"] | undefined;
  /** The machine never stood: what counts for its making is to be said. */
  readonly isNew: boolean;
  /** The disk that was made first, of a machine that Berth made. */
  readonly firstDisk?: string | undefined;
  /** A disc of our own in place of the hypervisor's fields, where these cannot say it. */
  readonly seed?: Seed | undefined;
  /** The password's hash, where a Secret holds it. */
  readonly passwordHash?: string | undefined;
  /** Where disks go that do not say, if the Hypervisor does not say either. */
  readonly storageDefault?: string | undefined;
}
