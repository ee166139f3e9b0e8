import type { Command } from "../command.ts";
import { serverOptions } from "../objects/connect.ts";
import { systemMachine } from "../objects/machine.ts";

export const support: Command = {
  name: "support",
  summary: "collect what somebody who helps needs to know, without secrets",
  description:
    "Writes one archive with versions, the objects of Berth's kinds, events, metrics, what berth " +
    "doctor finds, the last lines of the log and the sizes of the files in the data folder, and " +
    "prints what is in it. It works, with less in it, when the server does not answer.\n\n" +
    "The data of Secrets and ConfigMaps, user-data, password hashes, tokens and keys are left out. " +
    "Names and addresses of your machines are in it: look into it before you send it.",
  usage: "support [--out FILE]",
  options: {
    out: {
      type: "string",
      value: "FILE",
      description: "the archive (if absent, berth-support-TIME.tar.gz here)",
    },
    ...serverOptions,
  },
  arguments: [],
  examples: ["berth support", "berth support --data /var/lib/berth --out /tmp/berth.tar.gz"],
  // Only here: whoever asks for help need not wait for all drivers to load.
  run: async (call) => {
    const { runSupport, systemSupportTools } = await import("../support/run.ts");
    return await runSupport(call, systemMachine, systemSupportTools(systemMachine));
  },
};
