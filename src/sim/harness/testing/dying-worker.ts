import { assert } from "../../../kernel/assert.ts";
import { parentPort } from "node:worker_threads";
import type { SeedReport } from "../seed-worker.ts";

// A worker that does not survive some of its seeds: it ends at 3, and throws at 5.

assert(parentPort, "this file is a worker");
const port = parentPort;

port.on("message", (seed: number) => {
  if (seed === 3) process.exit(0);
  if (seed === 5) throw new Error("boom");
  const report: SeedReport = { seed, events: 300, simulatedMs: 1, cpuMs: 1, failure: undefined };
  port.postMessage(report);
});
