import { resolve } from "node:path";
import { type Call, type Command, exitCodes } from "../command.ts";

export const backup: Command = {
  name: "backup",
  summary: "copy an installation, running or not, into one file",
  description:
    "Copies all objects, as of one moment, into FILE, reads the copy back, and only then gives it " +
    "its name. The server may go on running.\n\n" +
    "Secrets stay encrypted in it, and the key is left out unless --with-key is given. With the key " +
    "in it, FILE is as good as the whole installation to whoever finds it.",
  usage: "backup FILE [--data DIR] [--with-key] [--force]",
  options: {
    data: { type: "string", value: "DIR", default: ".berth", description: "the data folder" },
    "with-key": {
      type: "boolean",
      description: "also the encryption key, the CA and the administrator's kubeconfig",
    },
    force: { type: "boolean", description: "overwrite FILE" },
  },
  arguments: ["FILE"],
  examples: ["berth backup /mnt/nas/berth-monday.backup"],
  run: runBackup,
};

async function runBackup(call: Call): Promise<number> {
  const [file = ""] = call.arguments;
  const { terminal } = call;
  const target = resolve(terminal.directory, file);
  const withKey = call.flag("with-key");
  const { backupInstallation } = await import("../../app/index.ts");
  const summary = backupInstallation({
    data: resolve(terminal.directory, call.string("data") ?? ".berth"),
    target,
    withKey,
    force: call.flag("force"),
  });
  terminal.print(`${target}: ${summary.objects} objects at revision ${summary.revision}`);
  if (!withKey) {
    terminal.note("the encryption key is not in it: keep a copy of secrets.key somewhere else");
  }
  return exitCodes.ok;
}
