import { resolve } from "node:path";
import { type Call, type Command, exitCodes } from "../command.ts";

export const restore: Command = {
  name: "restore",
  summary: "make a data folder of a backup",
  description:
    "Reads FILE to its end and makes a new data folder of it; berth up then serves it. Nothing is " +
    "overwritten: a folder that is not empty is refused, or with --force moved aside.\n\n" +
    "Without the encryption key, in FILE or by --key, the Secrets that cannot be read are named and " +
    "left out.",
  usage: "restore FILE [--data DIR] [--key KEYFILE] [--force]",
  options: {
    data: { type: "string", value: "DIR", default: ".berth", description: "the new data folder" },
    key: { type: "string", value: "KEYFILE", description: "your copy of secrets.key" },
    force: { type: "boolean", description: "move what is in the folder aside" },
  },
  arguments: ["FILE"],
  examples: ["berth restore /mnt/nas/berth-monday.backup --data /var/lib/berth"],
  run: runRestore,
};

async function runRestore(call: Call): Promise<number> {
  const [file = ""] = call.arguments;
  const { terminal } = call;
  const key = call.string("key");
  const data = resolve(terminal.directory, call.string("data") ?? ".berth");
  const { restoreInstallation } = await import("../../app/index.ts");
  const summary = restoreInstallation({
    backup: resolve(terminal.directory, file),
    data,
    keyFile: key === undefined ? undefined : resolve(terminal.directory, key),
    force: call.flag("force"),
  });
  if (summary.movedTo !== undefined) terminal.note(`what was there is now in ${summary.movedTo}`);
  for (const { id } of summary.unreadable) {
    terminal.note(`Secret ${id} cannot be read without its key, and was left out`);
  }
  terminal.print(`${data}: ${summary.objects} objects at revision ${summary.revision}`);
  terminal.note(
    "berth up on it only observes the hypervisors, because the original may still run. To let this " +
      "copy act, stop the original and run: berth takeover --all",
  );
  return exitCodes.ok;
}
