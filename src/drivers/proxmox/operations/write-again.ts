import type { Begun, Fence } from "../../../hypervisor/index.ts";
import { precondition } from "../../../kernel/guard.ts";
import { machinePath } from "../config-reader.ts";
import type { DriverContext } from "../context.ts";
import { begunOf } from "./begun.ts";
import type { Standing } from "./standing.ts";

/** A drive as the configuration has it. */
export interface Drive {
  readonly slot: string;
  readonly text: string;
  readonly standing: Standing;
}

/**
 * Nothing on the server knows a drive that only waits to be there: it cannot be grown or moved. Of
 * a machine that is off, every change applies all that waits.
 */
export async function writeAgain(
  { api }: DriverContext,
  { slot, text, standing: { place, config } }: Drive,
  fence: Fence,
): Promise<Begun> {
  const params = { [slot]: text, ...precondition("write-again-digest", { digest: config.digest }) };
  const path = machinePath(place, "/config");
  const result = await api.write("PUT", { path, params }, () => fence.mayWrite());
  const begun = begunOf(result, `attach the drive ${slot} of VM ${place.externalId}`);
  return begun.outcome === "done" ? { outcome: "progressed" } : begun;
}
