import { fork } from "node:child_process";
import { systemClock, systemRandom } from "../src/app/system.ts";
import { startProxmoxSimulator } from "../src/sim/index.ts";
import { running } from "../test/real/support/berth.ts";
import type { Door } from "../test/real/support/lab.ts";
import { type Calls, countCalls, makeRoom, type TaskRecord, tasksOf } from "./thousand-figures.ts";

/** A simulated cluster in a process of its own, which counts what it is asked. */
export interface ClusterProcess {
  readonly door: Door;
  readonly pid: number;
  /** What it was asked since the last time, and all its tasks. */
  report(): Promise<Report>;
  stop(): void;
}

interface Report {
  readonly calls: Calls;
  readonly tasks: readonly TaskRecord[];
}

const names = process.argv[2];
if (process.send !== undefined && names !== undefined && import.meta.main) {
  await serve(names.split(","));
}

export async function startCluster(nodes: readonly string[]): Promise<ClusterProcess> {
  const child = fork(import.meta.filename, [nodes.join(",")]);
  running.add(child);
  const next = (): Promise<unknown> => new Promise((resolve) => child.once("message", resolve));
  // cast: the child is this file.
  const door = (await next()) as Door;
  return {
    door,
    pid: child.pid ?? 0,
    report: async () => {
      const answer = next();
      child.send("report");
      // cast: the child is this file.
      return (await answer) as Report;
    },
    stop: () => {
      running.delete(child);
      child.kill("SIGTERM");
    },
  };
}

async function serve(nodes: readonly string[]): Promise<void> {
  const simulator = await startProxmoxSimulator({
    port: 0,
    version: "9.2",
    nodes,
    clock: systemClock,
    random: systemRandom,
  });
  const model = simulator.model();
  makeRoom(model);
  const calls = countCalls(model);
  const { url, fingerprint, tokenId, tokenSecret } = simulator;
  process.on("message", () => {
    process.send?.({ calls: calls(), tasks: tasksOf(model) } satisfies Report);
  });
  process.send?.({ url, fingerprint, tokenId, tokenSecret } satisfies Door);
}
