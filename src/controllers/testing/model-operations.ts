import type { Begun, Operation } from "../../hypervisor/index.ts";
import {
  addDisk,
  attach,
  destroyDisk,
  detach,
  discardVolume,
  grow,
  handOver,
  moveDisk,
  removeVolume,
} from "./model-disks.ts";
import { fetchImage, putImage, putSeed, removeImage, removeSeed } from "./model-files.ts";
import {
  clearHusk,
  clone,
  configure,
  create,
  destroy,
  regroup,
  release,
  stamp,
  unlock,
} from "./model-making.ts";
import { guard, migrate, powerOff, powerOn, reboot, resume, suspend } from "./model-power.ts";
import type { ModelTools } from "./model-state.ts";

type Does<Kind extends Operation["kind"]> = (
  tools: ModelTools,
  operation: Extract<Operation, { kind: Kind }>,
) => Begun | Promise<Begun>;

/** What a model does of what it is asked: all that can be asked of a driver. */
const operations: { readonly [Kind in Operation["kind"]]: Does<Kind> } = {
  create,
  clone,
  addDisk,
  attach,
  detach,
  destroyDisk,
  moveDisk,
  handOver,
  grow,
  configure,
  stamp,
  release,
  powerOn,
  powerOff,
  reboot,
  suspend,
  resume,
  migrate,
  guard,
  regroup,
  destroy,
  removeVolume,
  discardVolume,
  unlock,
  clearHusk,
  fetchImage,
  putImage,
  removeImage,
  putSeed,
  removeSeed,
};

export async function beginOn(tools: ModelTools, operation: Operation): Promise<Begun> {
  // cast: the table has for every kind the function of that kind, which the type cannot say.
  const begin = operations[operation.kind] as Does<Operation["kind"]>;
  return await begin(tools, operation);
}
