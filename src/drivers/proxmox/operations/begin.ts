import type { Begun, Fence, Operation } from "../../../hypervisor/index.ts";
import { unreachable } from "../../../kernel/assert.ts";
import type { DriverContext } from "../context.ts";
import { addDisk } from "./add-disk.ts";
import { configure, grow, release, stamp } from "./change.ts";
import { create } from "./create.ts";
import { destroy, removeVolume } from "./destroy.ts";
import { fetchImage } from "./fetch-image.ts";
import { powerOff, powerOn } from "./power.ts";

/** One operation, one write. */
export async function begin(
  context: DriverContext,
  operation: Operation,
  fence: Fence,
): Promise<Begun> {
  switch (operation.kind) {
    case "create":
      return await create(context, operation, fence);
    case "addDisk":
      return await addDisk(context, operation, fence);
    case "grow":
      return await grow(context, operation, fence);
    case "configure":
      return await configure(context, operation, fence);
    case "stamp":
      return await stamp(context, operation, fence);
    case "release":
      return await release(context, operation, fence);
    case "powerOn":
      return await powerOn(context, operation, fence);
    case "powerOff":
      return await powerOff(context, operation, fence);
    case "destroy":
      return await destroy(context, operation, fence);
    case "removeVolume":
      return await removeVolume(context, operation, fence);
    case "fetchImage":
      return await fetchImage(context, operation, fence);
    default:
      return unreachable(operation);
  }
}
