import type { Begun, Fence, Operation } from "../../../hypervisor/index.ts";
import type { DriverContext } from "../context.ts";
import { addDisk } from "./add-disk.ts";
import { attach, destroyDisk, detach } from "./attach.ts";
import { configure } from "./change.ts";
import { clone } from "./clone.ts";
import { create } from "./create.ts";
import { destroy, removeVolume } from "./destroy.ts";
import { discardVolume } from "./discard.ts";
import { fetchImage } from "./fetch-image.ts";
import { grow } from "./grow.ts";
import { guard, regroup } from "./guard.ts";
import { handOver } from "./hand-over.ts";
import { migrate, moveDisk } from "./move.ts";
import { powerOff, powerOn, reboot, resume, suspend } from "./power.ts";
import { putSeed, removeSeed } from "./seed.ts";
import { release, stamp } from "./stamp.ts";
import { putImage } from "./put-image.ts";
import { removeImage } from "./remove-image.ts";
import { clearHusk, unlock } from "./unlock.ts";

/** How each kind is begun. */
const beginners: { readonly [K in Operation["kind"]]: Beginner<K> } = {
  addDisk,
  attach,
  clearHusk,
  clone,
  configure,
  create,
  destroy,
  destroyDisk,
  detach,
  discardVolume,
  fetchImage,
  grow,
  guard,
  handOver,
  migrate,
  moveDisk,
  powerOff,
  powerOn,
  putImage,
  putSeed,
  reboot,
  regroup,
  release,
  removeImage,
  removeSeed,
  removeVolume,
  resume,
  stamp,
  suspend,
  unlock,
};

type Beginner<K extends Operation["kind"]> = (
  context: DriverContext,
  operation: Extract<Operation, { readonly kind: K }>,
  fence: Fence,
) => Promise<Begun>;

/** One operation, one write. */
export async function begin<K extends Operation["kind"]>(
  context: DriverContext,
  operation: Extract<Operation, { readonly kind: K }>,
  fence: Fence,
): Promise<Begun> {
  // cast: TypeScript does not see that an operation's kind is the key of its own type.
  const beginner = beginners[operation.kind] as Beginner<K>;
  return await beginner(context, operation, fence);
}
