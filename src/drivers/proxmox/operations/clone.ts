import { writeMark } from "../../../hypervisor/index.ts";
import type { Begun, Clone, Fence } from "../../../hypervisor/index.ts";
import type { DriverContext } from "../context.ts";
import { machinePath } from "../config-reader.ts";
import { classifyError } from "../errors.ts";
import { present } from "../translate/present.ts";
import { begunOf, refused } from "./begun.ts";
import { markFor } from "./standing.ts";

/**
 * Lets the server copy a machine. The description carries the mark from the beginning, so the clone
 * can be told from everything else as soon as there is anything in it; the UUID is the server's own
 * until `stamp` has written ours. A linked clone is possible from a template only.
 */
export async function clone(
  context: DriverContext,
  operation: Clone,
  fence: Fence,
): Promise<Begun> {
  const { claim, node, source, mode, name, snapshot, storage, pool } = operation;
  const place = { node, externalId: source };
  const read = await context.configs.read(place);
  if (read.type === "failed") return refused(read.failure);
  if (read.type === "notHere") {
    const message = `the machine ${source} to clone is not on ${node}`;
    return refused({ category: "ImageNotFound", message });
  }
  if (mode === "Linked" && read.config.values["template"] !== "1") {
    const message = `the machine ${source} is no template, so a clone cannot share its blocks`;
    return refused({ category: "ConfigurationError", message, remedy: "Use mode: Full." });
  }
  const params = {
    newid: claim.externalId,
    full: mode === "Full" ? 1 : 0,
    description: writeMark("", markFor(claim, { disks: {}, networks: {} })),
    ...present({ name, snapname: snapshot, pool, storage: mode === "Full" ? storage : undefined }),
  };
  const path = machinePath(place, "/clone");
  const result = await context.api.write("POST", { path, params }, () => fence.mayWrite());
  const begun = begunOf(result, `clone VM ${source} as ${claim.externalId}`);
  const isHusk = result.type === "error" && classifyError(result).meaning === "noWorker";
  return begun.outcome === "refused" && isHusk ? { ...begun, leaves: "Husk" } : begun;
}
