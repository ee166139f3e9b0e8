import type {
  Begun,
  Fence,
  PowerOff,
  PowerOn,
  Reboot,
  Resume,
  Suspend,
} from "../../../hypervisor/index.ts";
import type { DriverContext } from "../context.ts";
import { machinePath, type MachinePlace } from "../config-reader.ts";
import { stateStorage } from "../state-storage.ts";
import { present } from "../translate/present.ts";
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

/** Graceful forces only where that is asked for: a guest that was promised time keeps it. */
export async function powerOff(
  context: DriverContext,
  operation: PowerOff,
  fence: Fence,
): Promise<Begun> {
  const { mode, graceSeconds = graceSecondsDefault, thenForce = false } = operation;
  const isForced = mode === "Forced";
  const verb = isForced ? "stop" : "shutdown";
  const asked = { timeout: graceSeconds, ...(thenForce ? { forceStop: 1 } : {}) };
  return await switchPower(
    context,
    { target: operation, verb, params: isForced ? {} : asked },
    fence,
  );
}

/** The server shuts down, applies what is pending and starts again, in one task. */
export async function reboot(
  context: DriverContext,
  operation: Reboot,
  fence: Fence,
): Promise<Begun> {
  const params = { timeout: operation.graceSeconds ?? graceSecondsDefault };
  return await switchPower(context, { target: operation, verb: "reboot", params }, fence);
}

/**
 * To disk: without that it would only be paused, and lost with its node. The storage is named: it
 * is the one that was recorded as that of the new volume, and the one that the server would choose.
 */
export async function suspend(
  context: DriverContext,
  operation: Suspend,
  fence: Fence,
): Promise<Begun> {
  const stood = await standNow(context, operation);
  if (!stood.ok) return stood.begun;
  const { place, config } = stood.standing;
  const storage = operation.storage ?? (await stateStorage(context, place.node, config));
  const params: Params = { todisk: 1, ...present({ statestorage: storage }) };
  return await send(context, { place, verb: "suspend", params }, fence);
}

export async function resume(
  context: DriverContext,
  operation: Resume,
  fence: Fence,
): Promise<Begun> {
  return await switchPower(context, { target: operation, verb: "resume", params: {} }, fence);
}

interface Switch {
  readonly target: Target;
  readonly verb: "start" | "stop" | "shutdown" | "reboot" | "suspend" | "resume";
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
  return await send(context, { place: stood.standing.place, verb, params }, fence);
}

interface Sent extends Pick<Switch, "verb" | "params"> {
  readonly place: MachinePlace;
}

async function send(
  context: DriverContext,
  { place, verb, params }: Sent,
  fence: Fence,
): Promise<Begun> {
  const path = machinePath(place, `/status/${verb}`);
  const result = await context.api.write("POST", { path, params }, () => fence.mayWrite());
  return begunOf(result, `${verb} VM ${place.externalId}`);
}
