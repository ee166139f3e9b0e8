import { mostAtOnce } from "../src/controllers/testing/at-once.ts";
import { type Clock, sleep } from "../src/kernel/clock.ts";
import type { ProxmoxModel } from "../src/sim/index.ts";
import { show, spreadOf } from "./support.ts";

/** What is asked of a run. */
export interface RunOptions {
  readonly nodes: readonly string[];
  readonly machines: number;
  /** How long to go on watching when all is done. */
  readonly restMs: number;
}

/** A task as the cluster itself recorded it. */
export interface TaskRecord {
  readonly node: string;
  readonly type: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly exitStatus: string;
}

/** Requests by what they are for. */
export interface Calls {
  readonly writes: number;
  readonly looks: number;
  readonly ticks: number;
  readonly reads: number;
  /** Answered with an error: of a guest whose agent does not run yet, or of an id that is free. */
  readonly failed: number;
  /** Of them, those that waited in vain for a lock or for a node. */
  readonly timedOut: number;
}

const noCalls: Calls = {
  writes: 0,
  looks: 0,
  ticks: 0,
  reads: 0,
  failed: 0,
  timedOut: 0,
};

const gib = 1024 ** 3;
/** The virtual size of the image that is copied. */
const imageGib = 3;

/** Nodes with room for all: what is measured is time. */
export function makeRoom({ cluster }: ProxmoxModel): void {
  const { capacities, nodes } = cluster.state;
  for (const backing of Object.keys(capacities)) capacities[backing] = 1e6 * gib;
  for (const node of nodes) Object.assign(node, { memoryBytes: 1024 * gib, cpus: 128 });
}

/** What a call costs before and after the work itself: TLS, pveproxy, the way to the node. */
const wireMs = 10;

/** The simulated cluster answers reads within the same moment. Over a wire nothing does. */
export function addWire(model: ProxmoxModel, clock: Clock): void {
  const send = model.send.bind(model);
  model.send = async (request) => {
    await sleep(clock, wireMs);
    return await send(request);
  };
}

export function tasksOf({ cluster }: ProxmoxModel): TaskRecord[] {
  return cluster.state.nodes.flatMap(({ name, tasks }) => {
    return tasks.map(({ type, startMs, endMs = Infinity, exitStatus = "running" }) => {
      return { node: name, type, startMs, endMs, exitStatus };
    });
  });
}

function countCall(calls: Calls, request: { method: string; path: string }): Calls {
  const { method, path } = request;
  if (method !== "GET") return { ...calls, writes: calls.writes + 1 };
  if (/\/tasks\/[^/]+\/status/.test(path)) return { ...calls, looks: calls.looks + 1 };
  if (path.endsWith("/cluster/resources")) return { ...calls, ticks: calls.ticks + 1 };
  return { ...calls, reads: calls.reads + 1 };
}

/** Counts what a cluster is asked, and what it refuses, since the last time. */
export function countCalls(model: ProxmoxModel): () => Calls {
  let calls = noCalls;
  const send = model.send.bind(model);
  model.send = async (request) => {
    const path = request.path.replace(/\?.*/, "");
    calls = countCall(calls, { method: request.method, path });
    const reply = await send(request);
    if (reply.status >= 400) calls = countFailure(calls, reply.reason);
    return reply;
  };
  return () => {
    const counted = calls;
    calls = noCalls;
    return counted;
  };
}

function countFailure(calls: Calls, reason: string): Calls {
  const isLate = /lock|timeout|timed out/i.test(reason);
  return { ...calls, failed: calls.failed + 1, timedOut: calls.timedOut + (isLate ? 1 : 0) };
}

export function showCalls(name: string, calls: Calls, machines: number): void {
  const { writes, looks, ticks, reads, failed, timedOut } = calls;
  show(name, {
    calls: String(writes + looks + ticks + reads),
    "writes per machine": writes / machines,
    "reads per machine": reads / machines,
    "looks at tasks per machine": looks / machines,
    ticks: String(ticks),
    "answered with an error": String(failed),
    "waited in vain for a lock": String(timedOut),
  });
}

/** How the cluster was used, and how near that is to what it allows. */
export function showCluster(name: string, tasks: readonly TaskRecord[], tookMs: number): void {
  const copies = tasks.filter(({ type }) => type === "qmconfig");
  const byNode = Map.groupBy(copies, ({ node }) => node);
  const busyMs = [...byNode.values()].map(sumMs);
  const counts = [...byNode.values()].map(({ length }) => length);
  const boundMs = Math.max(...busyMs);
  show(`${name}: rate`, {
    "seconds from apply to all Ready": tookMs / 1000,
    "machines per second": (copies.length / tookMs) * 1000,
    "the storages allow": (copies.length / boundMs) * 1000,
    share: `${((100 * boundMs) / tookMs).toFixed(1)} %`,
  });
  show(`${name}: bound`, {
    copies: String(copies.length),
    "mean copy ms": sumMs(copies) / copies.length,
    [`of which ${imageGib} GiB at 400 ms`]: imageGib * 400,
    "busiest storage s": boundMs / 1000,
    "idlest s": Math.min(...busyMs) / 1000,
  });
  const pauses = [...byNode.values()].flatMap(pausesMs);
  const { p50, p90, p99, max } = spreadOf(pauses);
  const spread = { "p50 ms": p50, "p90 ms": p90, "p99 ms": p99, "max ms": max };
  show(`${name}: from copy to copy`, { n: String(pauses.length), ...spread });
  show(`${name}: the cluster`, {
    "machines per node": `${Math.min(...counts)}-${Math.max(...counts)}`,
    "most copies at once on a storage": String(Math.max(...[...byNode.values()].map(mostAtOnce))),
    "failed tasks": String(tasks.filter(({ exitStatus }) => exitStatus !== "OK").length),
  });
}

/** From the end of each copy onto a storage to the start of the next. */
function pausesMs(copies: readonly TaskRecord[]): number[] {
  const sorted = copies.toSorted((left, right) => left.startMs - right.startMs);
  return sorted.slice(1).map(({ startMs }, index) => startMs - (sorted[index]?.endMs ?? startMs));
}

function sumMs(tasks: readonly TaskRecord[]): number {
  return tasks.reduce((sum, { startMs, endMs }) => sum + endMs - startMs, 0);
}
