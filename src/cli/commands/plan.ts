import type { KubeObject } from "../../kernel/object.ts";
import { type Call, type Command, exitCodes, usageError } from "../command.ts";
import { applyManifest } from "../objects/apply-manifest.ts";
import { namespaceOption, serverOptions, withServer } from "../objects/connect.ts";
import { discover, type ServedKind } from "../objects/discovery.ts";
import { shownName } from "../objects/kinds.ts";
import { type Machine, systemMachine } from "../objects/machine.ts";
import { fileOptions, readDeclared } from "../objects/manifest-files.ts";
import type { Manifest } from "../objects/manifests.ts";
import { findObject } from "../objects/read-objects.ts";
import type { Server } from "../objects/server.ts";
import { planLines } from "../plan/lines.ts";
import { type Prospect, prospectOf } from "../plan/preview.ts";

export const plan: Command = {
  name: "plan",
  summary: "show what applying files would do, field by field, with the risk",
  description:
    "Lets the server check everything without storing it, and works out what the controllers would " +
    "do to machines that stand: each field with what it is and would be, and whether that is made " +
    "live, waits for a reboot, needs the power off, destroys data, or is refused. Nothing changes.\n\n" +
    "What is shown rests on what was last seen of the machine. The exit code is 0 where nothing " +
    "would change, 2 where something would, and 3 where something is refused.",
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

interface Planned extends Prospect {
  readonly name: string;
}

export async function runPlan(call: Call, machine: Machine): Promise<number> {
  const isJson = readForm(call);
  const manifests = await readDeclared(call, machine, plan.usage);
  return withServer(call, machine, async (server) => {
    const served = await discover(server);
    const planned: Planned[] = [];
    for (const manifest of manifests) {
      planned.push(await planManifest(server, { manifest, served, nowMs: machine.clock.nowMs() }));
    }
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

async function planManifest(
  server: Server,
  options: { manifest: Manifest; served: readonly ServedKind[]; nowMs: number },
): Promise<Planned> {
  const { manifest, served, nowMs } = options;
  const applied = await applyManifest(server, { manifest, served, isDryRun: true });
  if (applied.how === "refused") return { name: manifest.where, how: "refused", why: applied.why };
  const { kind, object: after } = applied;
  const { namespace = server.namespace, name = "" } = after.metadata;
  const isNew = applied.how === "created";
  const before: KubeObject | undefined = isNew
    ? undefined
    : await findObject(server, { kind, namespace, name });
  const prospect = await prospectOf({ server, served, before, after, nowMs });
  return { name: shownName(kind, name), ...prospect };
}

const signs = { created: "+", changed: "~", unchanged: "=", refused: "!" } as const;

function linesOf({ name, how, plan: changes, why }: Planned): string[] {
  return [
    `${signs[how]} ${name} ${how === "refused" ? "is refused" : how}`,
    ...(changes === undefined ? [] : planLines(changes)),
    ...(why === undefined ? [] : why.split("\n").map((line) => `  ${line}`)),
  ];
}

function exitCodeOf(planned: readonly Planned[]): number {
  const isRefused = planned.some(({ how, plan: changes }) => {
    return how === "refused" || JSON.stringify(changes ?? {}).includes('"effect":"Refused"');
  });
  if (isRefused) return exitCodes.refused;
  return planned.some(({ how }) => how !== "unchanged") ? exitCodes.changes : exitCodes.ok;
}
