import { assert } from "../../kernel/assert.ts";
import { parentPort, workerData } from "node:worker_threads";
import { runHistoryAlone } from "./history.ts";

/** What one seed came to, as a worker tells it. */
export interface SeedReport {
  readonly seed: number;
  readonly events: number;
  readonly simulatedMs: number;
  readonly cpuMs: number;
  /** What went wrong, in one line. */
  readonly failure: string | undefined;
}

// Runs histories for `run-seeds.ts`: a seed comes in, a report goes out.

assert(parentPort, "this file is a worker");
const port = parentPort;
// cast: run-seeds.ts says so.
const { also } = workerData as { readonly also: readonly string[] };

port.on("message", (seed: number) => {
  // A history never rejects: whatever goes wrong in it is its result.
  void report(seed);
});

async function report(seed: number): Promise<void> {
  const before = process.threadCpuUsage();
  const { events, simulatedMs, failure } = await runHistoryAlone({ seed, also });
  const { user, system } = process.threadCpuUsage(before);
  const cpuMs = (user + system) / 1000;
  const answer: SeedReport = { seed, events, simulatedMs, cpuMs, failure: failure?.message };
  port.postMessage(answer);
}
