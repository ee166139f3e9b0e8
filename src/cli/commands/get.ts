import { type Call, type Command, exitCodes } from "../command.ts";
import { serverOptions, withServer } from "../objects/connect.ts";
import { discover } from "../objects/discovery.ts";
import { findAll, refuseContradictions, selectOptions } from "../objects/found.ts";
import { untilStopped } from "../objects/interrupt.ts";
import { type Machine, systemMachine } from "../objects/machine.ts";
import { asDocument, nameLine, type Output, readOutput } from "../objects/output.ts";
import type { Server } from "../objects/server.ts";
import { showTables } from "../objects/show-table.ts";
import { readTargets, type Target } from "../objects/targets.ts";
import { watchTargets } from "../objects/watch-targets.ts";

export const get: Command = {
  name: "get",
  summary: "show objects, as a table or for programs",
  description:
    "Shows objects of one kind or several, by name or all of them. A kind goes by its plural, " +
    "singular, short name or kind, with or without its group (vm, virtualmachines, vm.berth.dev); " +
    "`berth get berth` shows everything of Berth's.\n\n" +
    "With --watch it goes on printing rows as they change, until Ctrl-C.",
  usage: "get KIND[,KIND] [NAME...] [-n NS | -A] [-l SELECTOR] [-w] [-o FORM]",
  options: {
    ...selectOptions,
    watch: { type: "boolean", short: "w", description: "go on with every change" },
    output: {
      type: "string",
      value: "FORM",
      short: "o",
      description: "table, wide, json, yaml, name or jsonpath=TEMPLATE",
    },
    "show-labels": { type: "boolean", description: "a column with the labels" },
    "no-headers": { type: "boolean", description: "no line with the names of the columns" },
    "ignore-not-found": { type: "boolean", description: "a name that is not there is no error" },
    ...serverOptions,
  },
  arguments: ["KIND", "NAME..."],
  examples: [
    "berth get vm",
    "berth get vm web -o yaml",
    "berth get vm -A -l app=web -w",
    "berth get vm web -o jsonpath='{.status.addresses[0].address}'",
  ],
  run: (call) => runGet(call, systemMachine),
};

export function runGet(call: Call, machine: Machine): Promise<number> {
  const output = readOutput(call.string("output"));
  return withServer(call, machine, async (server) => {
    const targets = readTargets(await discover(server), call.arguments, get.usage);
    refuseContradictions(call, targets);
    const isWide = output.form === "table" && output.isWide;
    const showing = { call, machine, server, targets, isWide };
    if (call.flag("watch")) {
      const { clock } = machine;
      await untilStopped(call.terminal, { clock }, (signal) => {
        return watchTargets(showing, output, signal);
      });
      return exitCodes.ok;
    }
    const missing =
      output.form === "table"
        ? await showTables(showing)
        : await showDocuments({ call, server, targets, output });
    return reportMissing(call, missing);
  });
}

async function showDocuments(options: {
  readonly call: Call;
  readonly server: Server;
  readonly targets: readonly Target[];
  readonly output: Exclude<Output, { form: "table" }>;
}): Promise<readonly string[]> {
  const { call, server, targets, output } = options;
  const { found, missing } = await findAll(call, server, targets);
  if (output.form === "name") {
    for (const { kind, object } of found) call.terminal.print(nameLine(kind, object));
    return missing;
  }
  const isOne = targets.length === 1 && targets[0]?.names.length === 1;
  if (isOne && found.length === 0) return missing;
  const objects = found.map(({ object }) => object);
  call.terminal.print(output.write(asDocument(objects, isOne)));
  return missing;
}

function reportMissing(call: Call, missing: readonly string[]): number {
  if (missing.length === 0 || call.flag("ignore-not-found")) return exitCodes.ok;
  for (const sentence of missing) call.terminal.note(`berth: ${sentence}`);
  return exitCodes.failed;
}
