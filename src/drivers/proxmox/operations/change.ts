import type { Begun, Configure, Fence } from "../../../hypervisor/index.ts";
import { precondition } from "../../../kernel/guard.ts";
import type { DriverContext } from "../context.ts";
import { machinePath } from "../config-reader.ts";
import type { ConfigChange } from "../translate/config.ts";
import { begunOf, refused } from "./begun.ts";
import { changeFor, effective } from "./config-change.ts";
import { standAt, type Standing } from "./standing.ts";

/** Writes what differs and nothing else. */
export async function configure(
  context: DriverContext,
  operation: Configure,
  fence: Fence,
): Promise<Begun> {
  const stood = await standAt(context, operation);
  if (!stood.ok) return stood.begun;
  const { standing } = stood;
  const change = changeFor(operation.shape, standing);
  if ("category" in change) return refused(change);
  const { makesVolume } = change;
  return await send(context, { standing, change, makesVolume }, fence);
}

export interface Writing {
  readonly standing: Standing;
  readonly change: ConfigChange;
  /** It makes or frees a volume, which takes its time. */
  readonly makesVolume?: boolean;
  /** Keys whose change waits for the next start, and is not to be made after all. */
  readonly revert?: readonly string[];
}

/**
 * PUT is done when it returns; POST starts a worker, which only what makes a volume is worth: a
 * node that is short of workers fails to start one now and then.
 */
export async function send(
  { api }: DriverContext,
  { standing, change, makesVolume = false, revert = [] }: Writing,
  fence: Fence,
): Promise<Begun> {
  const { place, config } = standing;
  const { set, remove } = effective(change, config.values, config.pending.keys);
  if (Object.keys(set).length + remove.length + revert.length === 0) return { outcome: "done" };
  const result = await api.write(
    makesVolume ? "POST" : "PUT",
    {
      path: machinePath(place, "/config"),
      params: {
        ...set,
        ...precondition("configure-digest", { digest: config.digest }),
        ...(remove.length > 0 ? { delete: remove.join(",") } : {}),
        ...(revert.length > 0 ? { revert: revert.join(",") } : {}),
      },
    },
    () => fence.mayWrite(),
  );
  return begunOf(result, `configure VM ${place.externalId}`);
}
