import type { Begun, Fence, PowerOff, PowerOn } from "../../../hypervisor/index.ts";
import type { DriverContext } from "../context.ts";
import { machinePath } from "../config-reader.ts";
import type { Params } from "../wire/wire.ts";
import { begunOf } from "./begun.ts";
import { standNow, type Target } from "./standing.ts";

/** How long a guest gets where nothing is said. */
const graceSecondsDefault = 180;

export async function powerOn(
  context: DriverContext,
  operation: PowerOn,
  fence: Fence,
): Promise<Begun> {
  return await switchPower(context, { target: operation, verb: "start", params: {} }, fence);
}

/** Graceful never forces: `forceStop` would switch a guest off that was promised time. */
export async function powerOff(
  context: DriverContext,
  operation: PowerOff,
  fence: Fence,
): Promise<Begun> {
  const { mode, graceSeconds } = operation;
  const isForced = mode === "Forced";
  const verb = isForced ? "stop" : "shutdown";
  const params: Params = isForced ? {} : { timeout: graceSeconds ?? graceSecondsDefault };
  return await switchPower(context, { target: operation, verb, params }, fence);
}

interface Switch {
  readonly target: Target;
  readonly verb: "start" | "stop" | "shutdown";
  readonly params: Params;
}

/** None of these takes a digest, so the mark is read in the last moment. */
async function switchPower(
  context: DriverContext,
  { target, verb, params }: Switch,
  fence: Fence,
): Promise<Begun> {
  const stood = await standNow(context, target);
  if (!stood.ok) return stood.begun;
  const { place } = stood.standing;
  const path = machinePath(place, `/status/${verb}`);
  const result = await context.api.write("POST", { path, params }, () => fence.mayWrite());
  return begunOf(result, `${verb} VM ${place.externalId}`);
}
