import { existsSync, writeSync } from "node:fs";
import { NetworkError, type Transport } from "../client/index.ts";
import { sleep } from "../kernel/clock.ts";
import {
  type FailpointName,
  Failpoints,
  type FailpointSettings,
  parseFailpoints,
} from "../kernel/failpoints.ts";
import type { Send } from "../drivers/proxmox/index.ts";
import { type Journal, StoreError } from "../store/index.ts";
import { pointsOfWrite } from "./failpoint-writes.ts";
import type { Log } from "./log.ts";
import { systemClock } from "./system.ts";

/**
 * Failpoints of this process: for tests that kill it where it hurts. They sit around the seams, in
 * wrappers that are not there at all unless a point is armed.
 */
export interface ProcessFailpoints {
  readonly settings: FailpointSettings;
  /** Resolves with whether what is about to be done is to fail. */
  reach(name: FailpointName): Promise<boolean>;
}

/** What the environment asks for. Throws a sentence for people where it asks for nonsense. */
export function readFailpoints(log: Log): ProcessFailpoints | undefined {
  const armed = parseFailpoints(process.env["BERTH_FAILPOINT"] ?? "");
  if (armed.length === 0) return undefined;
  const afterFile = process.env["BERTH_FAILPOINT_AFTER"] || undefined;
  const names = armed.map(({ name, visit }) => `${name}@${visit}`).join(",");
  log("warn", "failpoints are armed: this process is there to be tested", { names });
  const points = new Failpoints(armed, () => afterFile === undefined || existsSync(afterFile));
  return {
    settings: { armed, ...(afterFile === undefined ? {} : { afterFile }) },
    reach: (name) => reach(points, name),
  };
}

async function reach(points: Failpoints, name: FailpointName): Promise<boolean> {
  const order = points.visit(name);
  if (order?.do === "kill") {
    // Past all buffers, because nothing is emptied any more.
    writeSync(2, `berth: killed at the failpoint ${name}\n`);
    process.kill(process.pid, "SIGKILL");
  }
  if (order?.do === "delay") await sleep(systemClock, order.delayMs);
  return order?.do === "error";
}

/** The way from the controllers to the API. */
export function failingTransport(
  transport: Transport,
  failpoints: ProcessFailpoints | undefined,
): Transport {
  if (failpoints === undefined) return transport;
  return async (request, signal) => {
    const points = pointsOfWrite(request);
    if (points === undefined) return transport(request, signal);
    if (await failpoints.reach(points.before)) {
      throw new NetworkError("Unreachable", `the failpoint ${points.before} says so`);
    }
    const response = await transport(request, signal);
    if (await failpoints.reach(points.after)) {
      throw new NetworkError("UnknownOutcome", `the failpoint ${points.after} says so`);
    }
    return response;
  };
}

/** The way to a hypervisor. The fence is asked after the point, in the tick of the sending. */
export function failingSend(send: Send, failpoints: ProcessFailpoints | undefined): Send {
  if (failpoints === undefined) return send;
  return async (request) => {
    if (request.method === "GET") return send(request);
    if (await failpoints.reach("before-effect")) {
      return { type: "notSent", why: "unreachable", detail: "the failpoint before-effect says so" };
    }
    const reply = await send(request);
    const isLost = await failpoints.reach("after-effect");
    return isLost ? { type: "lost", detail: "the failpoint after-effect says so" } : reply;
  };
}

/** The way to the disk. */
export function failingJournal(
  journal: Journal,
  failpoints: ProcessFailpoints | undefined,
): Journal {
  if (failpoints === undefined) return journal;
  return {
    load: () => journal.load(),
    append: (records) => {
      const points = { before: "before-append", after: "after-append" } as const;
      return disk(failpoints, points, () => journal.append(records));
    },
    compact: (revision, superseded) => {
      const points = { before: "before-compact", after: "after-compact" } as const;
      return disk(failpoints, points, () => journal.compact(revision, superseded));
    },
    close: () => journal.close(),
  };
}

async function disk(
  failpoints: ProcessFailpoints,
  { before, after }: { readonly before: FailpointName; readonly after: FailpointName },
  work: () => Promise<void>,
): Promise<void> {
  if (await failpoints.reach(before)) {
    throw new StoreError("StorageFailed", `the failpoint ${before} says so`);
  }
  await work();
  if (await failpoints.reach(after)) throw new Error(`the failpoint ${after} says so`);
}
