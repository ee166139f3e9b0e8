import { type Call, type Command, exitCodes, usageError } from "../command.ts";
import { namespaceOption, serverOptions, withServer } from "../objects/connect.ts";
import { discover } from "../objects/discovery.ts";
import { type Machine, systemMachine } from "../objects/machine.ts";
import { fileOptions, readDeclared } from "../objects/manifest-files.ts";
import { planLines } from "../plan/lines.ts";
import { type Planned, planRun } from "../plan/run.ts";

export const plan: Command = {
  name: "plan",
  summary: "show what applying files would do, field by field, with the risk",
  description:
    "Lets the server check everything without storing it, and works out what the controllers would " +
    "do to machines that stand: each field with what it is and would be, and whether that is made " +
    "live, waits for a reboot, needs the power off, destroys data, or is refused. Nothing changes.\n\n" +
    "A VMClass or VMNetwork that changes is shown with the machines that it changes. Of Secrets, " +
    "ConfigMaps and cloud-init only the names are shown of what differs.\n\n" +
    "What is shown rests on what was last seen of the machine. The exit code is 0 where nothing " +
    "would change, 2 where something would, 3 where something is refused, and 1 where you lack the " +
    "right to be told: the server checks what you may write, also where nothing is stored.",
  usage: "plan -f FILE|DIR|- [-R] [-n NS] [-o json]",
  options: {
    ...fileOptions,
    output: { type: "string", value: "json", short: "o", description: "json, for programs" },
    ...namespaceOption,
    ...serverOptions,
  },
  arguments: [],
  examples: ["berth plan -f examples/first-vm.yaml", "berth plan -R -f machines/ -o json"],
  run: (call) => runPlan(call, systemMachine),
};

export async function runPlan(call: Call, machine: Machine): Promise<number> {
  const isJson = readForm(call);
  const manifests = await readDeclared(call, machine, plan.usage);
  return withServer(call, machine, async (server) => {
    const served = await discover(server);
    const planned = await planRun({ server, served, manifests, nowMs: machine.clock.nowMs() });
    if (isJson) call.terminal.print(JSON.stringify({ objects: planned }, undefined, 2));
    else for (const line of planned.flatMap(linesOf)) call.terminal.print(line);
    return exitCodeOf(planned);
  });
}

function readForm(call: Call): boolean {
  const form = call.string("output");
  if (form === undefined || form === "json") return form === "json";
  throw usageError(`-o must be json, not "${form}"`);
}

const signs = { created: "+", changed: "~", unchanged: "=", refused: "!", unknown: "?" } as const;
const words: Partial<Record<Planned["how"], string>> = {
  refused: "is refused",
  unknown: "cannot be told",
};

function linesOf({ name, namespace, how, because, plan: changes, why }: Planned): string[] {
  const where = namespace === undefined ? "" : ` in ${namespace}`;
  const cause = because === undefined ? "" : `, because of ${because}`;
  return [
    `${signs[how]} ${name}${where} ${words[how] ?? how}${cause}`,
    ...(changes === undefined ? [] : planLines(changes)),
    ...(why === undefined ? [] : why.split("\n").map((line) => `  ${line}`)),
  ];
}

function exitCodeOf(planned: readonly Planned[]): number {
  const isRefused = planned.some(({ how, plan: changes }) => {
    return how === "refused" || JSON.stringify(changes ?? {}).includes('"effect":"Refused"');
  });
  if (isRefused) return exitCodes.refused;
  if (planned.some(({ how }) => how === "unknown")) return exitCodes.failed;
  return planned.some(({ how }) => how !== "unchanged") ? exitCodes.changes : exitCodes.ok;
}
