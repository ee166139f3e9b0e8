import { type Call, type Command, exitCodes } from "../command.ts";
import { createPaint } from "../objects/colour.ts";
import { serverOptions, withServer } from "../objects/connect.ts";
import { describeObject } from "../objects/description.ts";
import { discover } from "../objects/discovery.ts";
import { happeningsOf } from "../objects/events.ts";
import { findAll, refuseContradictions, selectOptions } from "../objects/found.ts";
import { type Machine, systemMachine } from "../objects/machine.ts";
import { readTargets } from "../objects/targets.ts";

export const describe: Command = {
  name: "describe",
  summary: "show all there is to know about objects",
  description:
    "Shows an object's metadata, spec, status, conditions and what happened to it. For the reason " +
    "why it is not as it should be, berth why is shorter.",
  usage: "describe KIND NAME... | KIND [-l SELECTOR] [-n NS | -A]",
  options: { ...selectOptions, ...serverOptions },
  arguments: ["KIND", "NAME..."],
  examples: ["berth describe vm web", "berth describe hypervisors"],
  run: (call) => runDescribe(call, systemMachine),
};

export function runDescribe(call: Call, machine: Machine): Promise<number> {
  return withServer(call, machine, async (server) => {
    const served = await discover(server);
    const targets = readTargets(served, call.arguments, describe.usage);
    refuseContradictions(call, targets);
    const { found, missing } = await findAll(call, server, targets);
    const paint = createPaint(machine);
    for (const [index, { object }] of found.entries()) {
      const events = await happeningsOf(server, served, object);
      if (index > 0) call.terminal.print("\n");
      const nowMs = machine.clock.nowMs();
      for (const line of describeObject(object, { events, nowMs, paint }))
        call.terminal.print(line);
    }
    if (found.length === 0 && missing.length === 0) call.terminal.note("No resources found.");
    for (const sentence of missing) call.terminal.note(`berth: ${sentence}`);
    return missing.length === 0 ? exitCodes.ok : exitCodes.failed;
  });
}
