import { type Call, type Command, exitCodes, usageError } from "../command.ts";
import { type Applied, applyManifest } from "../objects/apply-manifest.ts";
import { namespaceOption, serverOptions, withServer } from "../objects/connect.ts";
import { discover } from "../objects/discovery.ts";
import { shownName } from "../objects/kinds.ts";
import { type Machine, systemMachine } from "../objects/machine.ts";
import { fileOptions, readDeclared } from "../objects/manifest-files.ts";
import { readOutput } from "../objects/output.ts";

export const apply: Command = {
  name: "apply",
  summary: "make objects as files declare them",
  description:
    "Creates what is not there and changes what is, so that it is as the files say: fields that were " +
    "applied before and are gone from the file are removed, what others set is left alone. It keeps " +
    "its memory where kubectl keeps it, so both can be used on the same objects.\n\n" +
    "A file may hold several documents. A bad one is named and the others are still applied; the " +
    "exit code is then 1. Fields that a kind does not have are refused.",
  usage: "apply -f FILE|DIR|- [-R] [-n NS] [--dry-run=server] [-o name]",
  options: {
    ...fileOptions,
    "dry-run": {
      type: "string",
      value: "server",
      description: "let the server check everything and change nothing",
    },
    output: { type: "string", value: "FORM", short: "o", description: "name, json or yaml" },
    ...namespaceOption,
    ...serverOptions,
  },
  arguments: [],
  examples: [
    "berth apply -f examples/first-vm.yaml",
    "berth apply -R -f machines/ --dry-run=server",
    "berth crds | berth apply --kubeconfig ~/.kube/config -f -",
  ],
  run: (call) => runApply(call, systemMachine),
};

export async function runApply(call: Call, machine: Machine): Promise<number> {
  const isDryRun = readDryRun(call);
  const manifests = await readDeclared(call, machine, apply.usage);
  const print = createPrinter(call, isDryRun);
  return withServer(call, machine, async (server) => {
    let served = await discover(server);
    let failures = 0;
    for (const manifest of manifests) {
      const applied = await applyManifest(server, { manifest, served, isDryRun });
      if (applied.how === "refused") {
        failures += 1;
        call.terminal.note(`berth: ${manifest.where}: ${applied.why}`);
        continue;
      }
      print(applied);
      // A new CRD brings a kind that the next document may be of.
      if (applied.kind.kind === "CustomResourceDefinition") served = await discover(server);
    }
    return failures === 0 ? exitCodes.ok : exitCodes.failed;
  });
}

function readDryRun(call: Call): boolean {
  const value = call.string("dry-run") ?? "none";
  if (value === "server" || value === "none") return value === "server";
  throw usageError(`--dry-run must be server or none, not "${value}"`);
}

type Done = Exclude<Applied, { how: "refused" }>;

function createPrinter(call: Call, isDryRun: boolean): (applied: Done) => void {
  const text = call.string("output");
  const output = text === undefined ? undefined : readOutput(text);
  const suffix = isDryRun ? " (server dry run)" : "";
  return ({ kind, object, how }) => {
    const name = shownName(kind, object.metadata.name ?? "");
    if (output?.form === "name") call.terminal.print(name);
    else if (output?.form === "text") call.terminal.print(output.write(object));
    else call.terminal.print(`${name} ${how}${suffix}`);
  };
}
