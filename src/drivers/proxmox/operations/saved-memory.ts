import type { Begun } from "../../../hypervisor/index.ts";
import { guard } from "../../../kernel/guard.ts";
import { type MachinePlace, readStatus } from "../config-reader.ts";
import type { DriverContext } from "../context.ts";
import { listTasks } from "../tasks.ts";
import { refused } from "./begun.ts";

/**
 * Why saved memory must not be thrown away now, if so. The server throws it away whenever it is
 * asked. But a machine that does not run sleeps on it; and one that is being resumed shows as
 * running while it still reads it, and keeps it for another try where that fails.
 */
export async function memoryHeld(
  context: DriverContext,
  place: MachinePlace,
): Promise<Begun | undefined> {
  const busy = await workOn(context, place);
  if (busy !== undefined) return busy;
  const status = await readStatus(context.api, place);
  if (!status.ok) return refused(status.failure);
  const { power } = status.value;
  if (guard("discard-memory-of-awake-vm", power === "Running" || power === "Paused"))
    return undefined;
  return { outcome: "changed", detail: `VM ${place.externalId} does not run` };
}

/** What is waited for while anybody works on the machine. */
export async function workOn(
  context: DriverContext,
  { node, externalId }: MachinePlace,
): Promise<Begun | undefined> {
  const tasks = await listTasks(context, { node, externalId, sinceMs: 0 });
  if (!tasks.ok) return refused(tasks.failure);
  const running = tasks.value.find(({ isRunning }) => !guard("saved-memory-no-task", !isRunning));
  if (running === undefined) return undefined;
  return { outcome: "blocked", waitsFor: `the task ${running.task}` };
}
