import type { Slots } from "../runtime/index.ts";
import type { Run } from "./hypervisor/index.ts";
import type { Informers } from "./informers.ts";
import type { Meters } from "./meters.ts";
import type { ControllersOptions } from "./options.ts";

/** What all controllers of one term stand on. */
export interface Ground {
  readonly options: ControllersOptions;
  readonly informers: Informers;
  readonly slots: Slots;
  readonly installation: string;
  readonly identity: string;
  /** The key of the digests of Secrets that Claims keep. */
  readonly digestKey?: string | undefined;
  /** This term, as hypervisors know it. */
  readonly run: Run;
  readonly mayWrite: () => boolean;
  /** How long what an earlier leader sent may still take effect. */
  readonly writableInMs: () => number;
  readonly meters: Meters;
}
