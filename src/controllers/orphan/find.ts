import type { OrphanSpec, OrphanStatus } from "../../api/index.ts";
import type { Mark } from "../../hypervisor/index.ts";

export type Decision = NonNullable<OrphanSpec["decision"]>;
export type Ownership = NonNullable<OrphanStatus["ownership"]>;

/** Something that nothing declares, and all that is known of it. */
export interface Find {
  readonly kind: OrphanSpec["kind"];
  readonly externalId: string;
  readonly ownership: Ownership;
  /** Why it counts as that, one sentence each. */
  readonly evidence: readonly string[];
  readonly allowed: readonly Decision[];
  readonly node: string;
  readonly storage?: string;
  readonly identity?: string;
  /** The name of the Claim that knows it. */
  readonly claim?: string;
  readonly mark?: Mark;
  readonly power?: string;
  readonly sizeBytes?: number;
  /** Of a volume or a file, where the storage reports it. */
  readonly createdMs?: number;
  readonly command?: string;
  readonly fileName?: string;
  /** Declared machines that wait for it to go, by their keys. */
  readonly blocks: readonly string[];
}
