import type { Hypervisor, VirtualMachine, VMImage } from "../../api/index.ts";
import type { Client, Informer } from "../../client/index.ts";
import type { Fence, TaskHandle } from "../../hypervisor/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import type { WrittenObjects } from "../claims/index.ts";
import type { Connections } from "../hypervisor/index.ts";
import type { ReportedOperation, Reports } from "../reports/index.ts";
import type { Target } from "./plan.ts";
import type { Upload } from "./upload.ts";
import type { Web } from "./web.ts";

export interface ImageDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly connections: Connections;
  readonly fence: Fence;
  readonly images: WrittenObjects<VMImage>;
  /** Those of all namespaces: a file may be many images'. */
  readonly allImages: Informer<VMImage>;
  /** Where files come from. Without it nothing can pass through here, and no name is resolved. */
  readonly web?: Web | undefined;
  /** With the index `image`. */
  readonly vms: Informer<VirtualMachine>;
  readonly hypervisors: Informer<Hypervisor>;
  readonly memory: Map<string, ImageMemory>;
  readonly reports: Reports;
}

/** What a process remembers of an image. All of it can be lost: the file's name tells. */
export interface ImageMemory {
  /** When a volume was last looked for, under which generation, and on which storages. */
  looked?: { readonly atMs: number; readonly generation: number; readonly where: string };
  upload?: Upload;
  /** So many bytes were sent, and have to be there. */
  sent?: number;
  task?: {
    readonly target: Target;
    readonly handle: TaskHandle;
    readonly operation: ReportedOperation;
    pollMs: number;
  };
}
