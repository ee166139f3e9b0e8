import { writeMark } from "../../../hypervisor/index.ts";
import type { Begun, Clone, Failure, Fence } from "../../../hypervisor/index.ts";
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
  const refusal = await cannotClone(context, operation, node);
  if (refusal !== undefined) return refused(refusal);
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

/** Why a machine cannot be cloned on a node; undefined if it can. Reads only. */
export async function cannotClone(
  context: DriverContext,
  { source, mode }: Pick<Clone, "source" | "mode">,
  node: string,
): Promise<Failure | undefined> {
  const read = await context.configs.read({ node, externalId: source });
  if (read.type === "failed") return read.failure;
  if (read.type === "notHere") {
    const message = `the machine ${source} to clone is not on ${node}`;
    const remedy = "Place the machine on the node of its source, or name another source.";
    return { category: "ImageNotFound", message, remedy };
  }
  if (mode === "Full" || read.config.values["template"] === "1") return undefined;
  const message = `the machine ${source} is no template, so a clone cannot share its blocks`;
  const remedy = "Use mode: Full, or make a template of it (qm template).";
  return { category: "ConfigurationError", message, remedy };
}
