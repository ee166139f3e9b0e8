import type { Command } from "../command.ts";
import { serverOptions } from "../objects/connect.ts";
import { systemMachine } from "../objects/machine.ts";

export const doctor: Command = {
  name: "doctor",
  summary: "examine the control plane and its hypervisors, and say what to do",
  description:
    "Looks at the control plane (API, controllers, data folder) and at every Hypervisor, or at those " +
    "named: whether each endpoint answers and proves who it is, version, token and its rights (with " +
    "the exact commands for what is missing, and what is too much), nodes and their majority, " +
    "storages and space, clocks, and locks that outlived their task. It changes nothing.\n\n" +
    "Every line is ok, a warning or a problem. The exit code is 1 if there is a problem.\n\n" +
    "With --snapshot it writes the inventory of one Hypervisor instead: nodes, storages, machines " +
    "with ids, names, sizes and tags, for berth sim --from. Credentials, addresses, cloud-init and " +
    "what people wrote into notes are not in it.",
  usage: "doctor [NAME...] [--snapshot FILE] [-o json|yaml]",
  options: {
    snapshot: { type: "string", value: "FILE", description: "write an inventory into a new file" },
    output: { type: "string", value: "FORM", short: "o", description: "json, yaml or jsonpath=…" },
    ...serverOptions,
  },
  arguments: ["NAME..."],
  examples: ["berth doctor", "berth doctor pve -o json", "berth doctor pve --snapshot pve.json"],
  // Only here: whoever asks for help need not wait for all drivers to load.
  run: async (call) => {
    const { runDoctor, systemTools } = await import("../doctor/run.ts");
    return await runDoctor(call, systemMachine, systemTools(systemMachine));
  },
};
