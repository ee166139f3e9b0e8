import { resolve } from "node:path";
import { type Call, type Command, exitCodes, usageError } from "../command.ts";
import { readPort } from "../port.ts";

export const sim: Command = {
  name: "sim",
  summary: "run a simulated hypervisor, to try things without hardware",
  description:
    "Serves a simulated Proxmox VE cluster over HTTPS on loopback, in the foreground: its API with " +
    "tasks, locks, storages and rights, but no machine behind it. Without --state everything is " +
    "forgotten at the end.\n\n" +
    "Test hooks are served under /_sim/.",
  usage: "sim proxmox [--port N] [--version V] [--nodes A,B,C] [--state FILE] [--print json]",
  options: {
    port: { type: "string", value: "N", default: "0", description: "the port; 0 takes a free one" },
    version: { type: "string", value: "V", default: "9.2", description: "7.4, 8.4 or 9.2" },
    nodes: { type: "string", value: "A,B,C", description: "the names of its nodes" },
    state: { type: "string", value: "FILE", description: "keep the cluster's state in this file" },
    print: {
      type: "string",
      value: "json",
      description: "print one line of JSON with the URL, the credentials and the fingerprint",
    },
  },
  arguments: ["proxmox"],
  examples: ["berth sim proxmox", "berth sim proxmox --version 8.4 --print json"],
  run: runSim,
};

async function runSim(call: Call): Promise<number> {
  const { terminal } = call;
  const [type] = call.arguments;
  if (type !== "proxmox") throw usageError(`there is no simulated ${type}: there is proxmox`);
  const print = call.string("print");
  if (print !== undefined && print !== "json")
    throw usageError("--print knows json and nothing else");
  const interrupted = terminal.interrupted;
  const state = call.string("state");
  const { startSimulator } = await import("../../app/index.ts");
  const simulator = await startSimulator({
    port: readPort(call.string("port")),
    version: call.string("version") ?? "9.2",
    nodes: (call.string("nodes") ?? "").split(",").filter((name) => name !== ""),
    dataFile: state === undefined ? undefined : resolve(terminal.directory, state),
  });
  const { url, tokenId, tokenSecret, user, password, fingerprint, ca, nodes } = simulator;
  terminal.print(
    print === "json"
      ? JSON.stringify({ url, tokenId, tokenSecret, user, password, fingerprint, ca, nodes })
      : `the simulated Proxmox cluster is ready: ${url}, token ${tokenId}=${tokenSecret}`,
  );
  await interrupted;
  await simulator.close();
  return exitCodes.ok;
}
