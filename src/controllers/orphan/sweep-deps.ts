import type {
  Claim,
  ClaimSpec,
  Hypervisor,
  Orphan,
  VirtualMachine,
  VMImage,
} from "../../api/index.ts";
import type { Client, Informer } from "../../client/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import { objectKey } from "../../kernel/object.ts";
import type { EventRecorder } from "../../runtime/index.ts";
import type { Ledger, WrittenObjects } from "../claims/index.ts";
import type { Connections } from "../hypervisor/index.ts";
import type { OrphanFigures, Sweeps } from "./memory.ts";

/** All that sweeps work with. */
export interface SweepDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly connections: Connections;
  readonly ledger: Ledger;
  readonly events: EventRecorder;
  readonly figures: OrphanFigures;
  readonly sweeps: Sweeps;
  readonly hypervisors: Pick<WrittenObjects<Hypervisor>, "get" | "note">;
  /** With the index `hypervisor`. */
  readonly vms: Informer<VirtualMachine>;
  readonly images: Informer<VMImage>;
  /** With the index `system`. */
  readonly claims: Informer<Claim>;
  /** With the index `hypervisor`. */
  readonly orphans: Informer<Orphan>;
  /** The name of an image's file, wherever it is. */
  readonly imageFileOf: (image: VMImage) => string;
  /** When this process began to work. */
  readonly beganMs: number;
  /** Runs an Orphan again. */
  readonly wakeOrphan: (name: string) => void;
}

/** The very object that holds a Claim. One that is on its way out still sees to its machine. */
export function ownerOf(
  { vms }: Pick<SweepDeps, "vms">,
  { owner }: ClaimSpec,
): VirtualMachine | undefined {
  const vm = vms.get(objectKey(owner));
  return owner.uid === undefined || vm?.metadata.uid === owner.uid ? vm : undefined;
}

export function isDeclared(deps: Pick<SweepDeps, "vms">, claim: ClaimSpec): boolean {
  return ownerOf(deps, claim) !== undefined;
}

/** The very VMImage that holds the Claim of a file. */
export function isFileDeclared(
  { images }: Pick<SweepDeps, "images">,
  { owner }: ClaimSpec,
): boolean {
  return images.get(objectKey(owner))?.metadata.uid === owner.uid;
}
