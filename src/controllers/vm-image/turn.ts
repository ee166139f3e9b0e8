import { vmImageKind } from "../../api/index.ts";
import type { Hypervisor, VirtualMachine, VMImage } from "../../api/index.ts";
import type { Client, Informer } from "../../client/index.ts";
import type { Clock } from "../../kernel/clock.ts";
import { objectKey } from "../../kernel/object.ts";
import type { Random } from "../../kernel/random.ts";
import { writeStatus } from "../../runtime/index.ts";
import type { FileLedger, WrittenObjects } from "../claims/index.ts";
import type { StatusFailure } from "../failures/index.ts";
import type { Connections } from "../hypervisor/index.ts";
import { annotationToken, type OperationDeps } from "../operations/index.ts";
import type { Reports } from "../reports/index.ts";
import { copyAt } from "./copies.ts";
import { placeText, type Copy, type CopyPlace } from "./plan.ts";
import { imageStatusOf, type ImageView } from "./status.ts";
import type { Web } from "./web.ts";

export interface ImageDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly connections: Connections;
  /** Which files Berth brought, and for whom. */
  readonly files: FileLedger;
  readonly images: WrittenObjects<VMImage>;
  /** Those of all namespaces: a file may be many images'. */
  readonly allImages: Informer<VMImage>;
  /** Where files come from. Without it nothing can pass through here, and no name is resolved. */
  readonly web?: Web | undefined;
  /** With the index `image`. */
  readonly vms: Informer<VirtualMachine>;
  readonly hypervisors: Informer<Hypervisor>;
  readonly memory: Map<string, ImageCache>;
  readonly operations: OperationDeps;
  readonly reports: Reports;
  readonly wake: (key: string) => void;
}

/** What a process keeps of an image to save calls. All of it can be lost before any turn. */
export interface ImageCache {
  /** When a volume was last looked for, under which generation, and on which storages. */
  looked?: {
    readonly atMs: number;
    readonly generation: number;
    readonly where: string;
    /** What VMs reported of it by then. */
    readonly reports: string;
  };
  /** When the files of its copies were last seen, by their places. */
  readonly seen: Map<string, number>;
  /** What VMs had reported of the file at a place when that was last listed. */
  readonly checked: Map<string, string>;
  /** How much of each file was sent, by the id of its operation. */
  sent?: Map<string, { doneBytes: number }>;
}

/** One turn of an image. `image` becomes newer as it is written. */
export interface ImageTurn {
  readonly key: string;
  readonly deps: ImageDeps;
  readonly cache: ImageCache;
  /** The failure that the status told when the turn began. */
  readonly failure?: StatusFailure | undefined;
  /** What is wrong with the image as a whole, once it is known: each write of the turn tells it. */
  trouble?: Pick<ImageView, "failure" | "waitingFor" | "isStalled">;
  /** The places that need the file, once they are known. */
  targets?: readonly CopyPlace[];
  /** Hypervisors that need the file, and of which nobody knows now whether they answer. */
  silent?: readonly string[];
  image: VMImage;
}

export function copiesOf({ image }: Pick<ImageTurn, "image">): readonly Copy[] {
  return image.status?.copies ?? [];
}

/** Where the file is needed and where no copy is known, in words for people. */
function awaitedBy({ targets = [] }: ImageTurn, { copies }: ImageView): string[] {
  return targets.filter((place) => copyAt(copies, place) === undefined).map(placeText);
}

/** Hypervisors that need the file, have no known copy, and were not asked yet. */
function unaskedBy({ silent = [] }: ImageTurn, { copies }: ImageView): string[] {
  return silent.filter((name) => !copies.some(({ hypervisor }) => hypervisor === name));
}

/** The VMs that keep an image which is being deleted. */
function holdersOf({ key, deps, image }: ImageTurn): string[] {
  if (image.metadata.deletionTimestamp === undefined) return [];
  return deps.vms.byIndex("image", key).map(({ metadata }) => objectKey(metadata));
}

/** Writes the status, over the version that was read. */
export async function writeImage(turn: ImageTurn, view: ImageView): Promise<void> {
  const { deps, image } = turn;
  const asked = annotationToken(image.metadata, "reconcileAt");
  const places = { awaited: awaitedBy(turn, view), unasked: unaskedBy(turn, view) };
  const whole = { ...turn.trouble, ...places, heldBy: holdersOf(turn), ...view };
  const status = {
    ...imageStatusOf(image, whole, deps.clock.nowMs()),
    ...(asked === undefined ? {} : { handledReconcileAt: asked }),
  };
  const objects = deps.client.of(vmImageKind);
  turn.image = deps.images.note(await writeStatus<VMImage>(objects, image, status));
}
