import { existsSync, writeSync } from "node:fs";
import { type FailpointName, Failpoints, type FailpointOrder } from "../kernel/failpoints.ts";
import type { SqliteWriterOptions } from "./sqlite-writer.ts";

/** What the writing thread does at each of its points; nothing, unless a test armed one. */
export function failpointsOf({
  failpoints: settings,
}: SqliteWriterOptions): ((name: FailpointName) => void) | undefined {
  if (settings === undefined) return undefined;
  const { armed, afterFile } = settings;
  const points = new Failpoints(armed, () => afterFile === undefined || existsSync(afterFile));
  return (name) => {
    const order = points.visit(name);
    if (order !== undefined) strike(name, order);
  };
}

function strike(name: FailpointName, order: FailpointOrder): void {
  switch (order.do) {
    case "kill":
      // Past all buffers, because nothing is emptied any more.
      writeSync(2, `berth: killed at the failpoint ${name}\n`);
      process.kill(process.pid, "SIGKILL");
      return;
    case "error":
      throw new Error(`the failpoint ${name} says so`);
    case "delay":
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, order.delayMs);
  }
}
