import { type Call, type Command, exitCodes, usageError } from "../command.ts";
import { createPaint } from "../objects/colour.ts";
import { namespaceOption, serverOptions, withServer } from "../objects/connect.ts";
import { discover } from "../objects/discovery.ts";
import { happeningsOf } from "../objects/events.ts";
import { shownName } from "../objects/kinds.ts";
import { type Machine, systemMachine } from "../objects/machine.ts";
import { getObject } from "../objects/read-objects.ts";
import { readTargets } from "../objects/targets.ts";
import { claimOf } from "../why/claim.ts";
import { diagnose } from "../why/diagnose.ts";
import { renderWhy } from "../why/render.ts";

export const why: Command = {
  name: "why",
  summary: "say why an object is not as it should be, and what to do",
  description:
    "Follows an object to the cause: its failure, its conditions, and those of everything that it " +
    "depends on, the deepest first and nothing cut off. Then what is going on now, when the next " +
    "attempt is, what happened so far, and what you can do.",
  usage: "why KIND/NAME | KIND NAME [-n NS]",
  options: { ...namespaceOption, ...serverOptions },
  arguments: ["KIND/NAME", "NAME?"],
  examples: ["berth why vm/web", "berth why hypervisor pve -n default"],
  run: (call) => runWhy(call, systemMachine),
};

export function runWhy(call: Call, machine: Machine): Promise<number> {
  return withServer(call, machine, async (server) => {
    const served = await discover(server);
    const [target, ...others] = readTargets(served, call.arguments, why.usage);
    const [name, ...more] = target?.names ?? [];
    if (target === undefined || name === undefined || others.length + more.length > 0) {
      throw usageError(`name one object. Usage: berth ${why.usage}`);
    }
    const { kind } = target;
    const object = await getObject(server, { kind, namespace: server.namespace, name });
    const suspects = await diagnose(server, served, { kind, object });
    const lines = renderWhy({
      name: shownName(kind, name),
      object,
      suspects,
      events: await happeningsOf(server, served, object),
      claim: await claimOf(server, served, object),
      nowMs: machine.clock.nowMs(),
      paint: createPaint(machine),
    });
    for (const line of lines) call.terminal.print(line);
    return exitCodes.ok;
  });
}
