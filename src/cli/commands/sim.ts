import { resolve } from "node:path";
import { type Call, type Command, exitCodes, usageError } from "../command.ts";
import { readPort } from "../port.ts";

export const sim: Command = {
  name: "sim",
  summary: "run a simulated hypervisor, or histories of Berth on one",
  description:
    "berth sim proxmox serves a simulated Proxmox VE cluster over HTTPS on loopback, in the foreground: its API with " +
    "tasks, locks, storages and rights, but no machine behind it. Without --state everything is " +
    "forgotten at the end.\n\n" +
    "With --from it is a twin of a real cluster, to rehearse on: the same nodes, storages, machines " +
    "and ids, from an inventory that berth doctor --snapshot wrote. Users, paths and addresses are " +
    "made up.\n\n" +
    "Test hooks are served under /_sim/.\n\n" +
    "berth sim run proves Berth itself: in each history two simulated clusters, the API and the " +
    "controllers run on a virtual clock, and what a seed decides goes wrong: crashes at any call, " +
    "lost replies, failing and dying tasks, old lists, people who take ids. The laws of Berth are " +
    "checked at every event. Seeds are chosen at random unless --from names the first one. A seed " +
    "gives the same history every time; --seed S tells it, and --shrink makes one that breaks a " +
    "law as short as it can be.",
  usage: "sim proxmox|run [OPTIONS]",
  options: {
    port: { type: "string", value: "N", default: "0", description: "the port; 0 takes a free one" },
    version: {
      type: "string",
      value: "V",
      description: "7.4, 8.4 or 9.2 (if absent, 9.2, or what is nearest to the inventory's)",
    },
    nodes: { type: "string", value: "A,B,C", description: "the names of its nodes" },
    from: {
      type: "string",
      value: "FILE|S",
      description: "proxmox: the inventory to be a twin of; run: the first seed, random if absent",
    },
    state: { type: "string", value: "FILE", description: "keep the cluster's state in this file" },
    print: {
      type: "string",
      value: "json",
      description: "print one line of JSON with the URL, the credentials and the fingerprint",
    },
    seeds: { type: "string", value: "N", description: "run: how many histories; 200 if absent" },
    minutes: { type: "string", value: "M", description: "run: for how long instead" },
    seed: { type: "string", value: "S", description: "run: only this one, told event by event" },
    also: {
      type: "strings",
      value: "NAME",
      description: "run: with a fault that Berth does not withstand yet, or all of them",
    },
    shrink: {
      type: "boolean",
      description: "run: with --seed, leave out everything that the violation does not need",
    },
    steps: {
      type: "string",
      value: "N,N",
      description: "run: with --seed, only these steps of the history, as --shrink names them",
    },
  },
  arguments: ["proxmox|run"],
  examples: [
    "berth sim proxmox",
    "berth sim proxmox --version 8.4 --print json",
    "berth sim proxmox --from cluster.json",
    "berth sim run --seeds 2000",
    "berth sim run --seed 17",
    "berth sim run --seed 17 --shrink",
  ],
  run: runSim,
};

async function runSim(call: Call): Promise<number> {
  const { terminal } = call;
  const [type] = call.arguments;
  if (type === "run") {
    refuseOptions(call, ["version", "nodes", "state", "print"], "sim run");
    const { runSimulation } = await import("../sim/run.ts");
    return await runSimulation(call);
  }
  refuseOptions(call, ["seeds", "minutes", "seed", "steps"], "sim proxmox");
  refuseOthers(call);
  if (type !== "proxmox")
    throw usageError(`there is no berth sim ${type}: there are proxmox and run`);
  const print = call.string("print");
  if (print !== undefined && print !== "json")
    throw usageError("--print knows json and nothing else");
  const interrupted = terminal.interrupted;
  const inDirectory = (path: string | undefined): string | undefined =>
    path === undefined ? undefined : resolve(terminal.directory, path);
  const nodes = (call.string("nodes") ?? "").split(",").filter((name) => name !== "");
  const from = inDirectory(call.string("from"));
  if (from !== undefined && nodes.length > 0)
    throw usageError("--nodes and --from exclude each other: the inventory names the nodes");
  const { startSimulator } = await import("../../app/index.ts");
  const simulator = await startSimulator({
    port: readPort(call.string("port")),
    version: call.string("version"),
    nodes,
    dataFile: inDirectory(call.string("state")),
    from,
  });
  const { url, tokenId, tokenSecret, user, password, fingerprint, ca } = simulator;
  const about = { url, tokenId, tokenSecret, user, password, fingerprint, ca };
  terminal.print(
    print === "json"
      ? JSON.stringify({ ...about, nodes: simulator.nodes })
      : `the simulated Proxmox cluster is ready: ${url}, token ${tokenId}=${tokenSecret}`,
  );
  await interrupted;
  await simulator.close();
  return exitCodes.ok;
}

function refuseOthers(call: Call): void {
  if (call.strings("also").length > 0) throw usageError("berth sim proxmox knows no --also");
  if (call.flag("shrink")) throw usageError("berth sim proxmox knows no --shrink");
}

function refuseOptions(call: Call, options: readonly string[], command: string): void {
  const given = options.find((option) => call.string(option) !== undefined);
  if (given !== undefined) throw usageError(`berth ${command} knows no --${given}`);
}
