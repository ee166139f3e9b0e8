import { isJsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { type Call, CommandError, exitCodes } from "../command.ts";
import { placeOf } from "../objects/delete-object.ts";
import { followObject } from "../objects/follow-object.ts";
import type { Found } from "../objects/found.ts";
import { readDurationMs } from "../objects/go-duration.ts";
import { untilStopped } from "../objects/interrupt.ts";
import type { Machine } from "../objects/machine.ts";
import type { Server } from "../objects/server.ts";
import { textOf } from "../objects/text.ts";
import { statusOf } from "../why/findings.ts";
import { isPaused, nameOf, say } from "./say.ts";

/** Says that the open operation should end, and waits until its end was seen. */
export async function cancelWork(
  call: Call,
  { server, machine, found }: { server: Server; machine: Machine; found: Found },
): Promise<number> {
  const operation = statusOf(found.object)["operation"];
  if (!isJsonObject(operation) || typeof operation["id"] !== "string") {
    throw new CommandError(`nothing is under way for ${nameOf(found)}`);
  }
  const withinMs = readDurationMs(call.string("timeout") ?? "60s", "timeout");
  await say(server, found, { paused: "true", cancel: operation["id"] });
  call.terminal.note(`Ends: ${textOf(operation["intent"])}`);
  const ending = await untilStopped(call.terminal, { clock: machine.clock, withinMs }, (signal) =>
    endOf(call, { server, found, signal }, operation["id"]),
  );
  if (ending.how !== "done") {
    call.terminal.note(`berth: ${nameOf(found)} is paused, and its work has not ended yet`);
    return exitCodes.failed;
  }
  call.terminal.print(`${nameOf(found)} cancelled and paused; seen: ${seenOf(ending.result)}`);
  return exitCodes.ok;
}

interface Followed {
  readonly server: Server;
  readonly found: Found;
  readonly signal: AbortSignal;
}

/**
 * The object once nothing is open any more; undefined if it went meanwhile. Where the work had gone
 * on to its next step before the word was read, the word is said of that one too.
 */
async function endOf(
  call: Call,
  { server, found, signal }: Followed,
  said: unknown,
): Promise<KubeObject | undefined> {
  let id = said;
  for await (const object of followObject(server, placeOf(found), signal)) {
    if (object === undefined) return undefined;
    const operation = statusOf(object)["operation"];
    if (!isJsonObject(operation) || typeof operation["id"] !== "string") return object;
    if (operation["id"] === id) continue;
    // Whoever resumed it wants what is done now.
    if (!isPaused(object)) throw new CommandError(`${nameOf(found)} was resumed meanwhile`);
    id = operation["id"];
    await say(server, found, { cancel: operation["id"] });
    call.terminal.note(`Ends: ${textOf(operation["intent"])}`);
  }
  return undefined;
}

function seenOf(object: KubeObject | undefined): string {
  if (object === undefined) return "the object is gone";
  const { externalId, node, powerState, disks } = statusOf(object);
  if (externalId === undefined) return "no machine";
  const count = Array.isArray(disks) ? disks.length : 0;
  const power = powerState === undefined ? "never started" : textOf(powerState);
  return `machine ${textOf(externalId)} on ${textOf(node ?? "?")}, ${power}, ${count} disks`;
}
