/**
 * The embedded API under load, from outside over TLS: creates, lists, watches, memory, restart.
 *
 * With `--peer KUBECONFIG` the same requests go to another
 * Kubernetes API (a kube-apiserver) in the same run, so that the ratios are of one machine at one
 * time. Usage: npm run bench -- apiserver [--objects 10000] [--peer KUBECONFIG]
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { parse } from "yaml";
import { startBerth, temporaryFolder } from "../test/real/support/berth.ts";
import { follow } from "../test/real/support/http.ts";
import { type FastConnection, openFast, type Target as Address } from "./fast-http.ts";
import { show, spreadOf, timeEach } from "./support.ts";

type Target = Address & { readonly name: string };

const { values } = parseArgs({
  options: {
    objects: { type: "string", default: "10000" },
    serial: { type: "string", default: "2000" },
    peer: { type: "string" },
  },
});
const objects = Number(values.objects);
const watchers = 100;
// A kind that no controller acts on: the API is measured, not what comes of it.
const collection = "/apis/berth.dev/v1alpha1/namespaces/default/vmclasses";

await main();

async function main(): Promise<void> {
  const folder = temporaryFolder("bench");
  try {
    const startedMs = performance.now();
    const first = await startBerth({ data: folder.path });
    show("berth: first start", { ms: performance.now() - startedMs });
    if (values.peer !== undefined) await measure(peerOf(values.peer));
    await measure({ ...first, name: "berth" });
    show("berth: memory", { "RSS MB": residentMegabytes(first.pid) });
    await first.kill();
    const againMs = performance.now();
    const again = await startBerth({ data: folder.path });
    show(`berth: restart with ${objects}`, {
      ms: performance.now() - againMs,
      "RSS MB": residentMegabytes(again.pid),
    });
    await again.stop();
  } finally {
    folder.remove();
  }
}

async function measure(target: Target): Promise<void> {
  const connections = await Promise.all(Array.from({ length: 64 }, () => openFast(target)));
  try {
    await createMany(connections.slice(0, 8), "warm", 400);
    const serial = await createMany(connections.slice(0, 1), "serial", serialCount());
    report(`${target.name}: creates, serial`, serial);
    const many = await createMany(connections, "many", objects - serialCount() - 400);
    report(`${target.name}: creates, 64 writers`, many);
    await measureList(target, connections);
    await measureWatch(target, connections);
  } finally {
    for (const connection of connections) connection.close();
  }
}

function serialCount(): number {
  return Number(values.serial);
}

function report(name: string, run: { samplesMs: number[]; totalMs: number }): void {
  const spread = spreadOf(run.samplesMs);
  show(name, {
    "per second": (run.samplesMs.length * 1000) / run.totalMs,
    "p50 ms": spread.p50,
    "p99 ms": spread.p99,
  });
}

/** Each connection creates one object after the other. */
async function createMany(
  connections: readonly FastConnection[],
  prefix: string,
  count: number,
): Promise<{ samplesMs: number[]; totalMs: number }> {
  const free = [...connections];
  return await timeEach(count, connections.length, async (index) => {
    const connection = free.pop();
    if (connection === undefined) throw new Error("more requests than connections");
    const reply = await connection.ask("POST", collection, manifest(`${prefix}-${index}`));
    free.push(connection);
    if (reply.status !== 201) throw new Error(`create: ${reply.status} ${reply.body.toString()}`);
  });
}

async function measureList(target: Target, [connection]: readonly FastConnection[]): Promise<void> {
  const samples: number[] = [];
  let bytes = 0;
  for (let round = 0; round < 9; round++) {
    const beginMs = performance.now();
    const reply = await connection?.ask("GET", collection);
    samples.push(performance.now() - beginMs);
    bytes = reply?.body.length ?? 0;
  }
  const spread = spreadOf(samples);
  show(`${target.name}: list of ${objects}`, {
    "p50 ms": spread.p50,
    "max ms": spread.max,
    MB: bytes / 1e6,
  });
}

/** From the writer's request to the event at each of 100 watchers. */
async function measureWatch(
  target: Target,
  [connection]: readonly FastConnection[],
): Promise<void> {
  const page = await connection?.ask("GET", `${collection}?limit=1`);
  const revision = JSON.parse(page?.body.toString() ?? "").metadata.resourceVersion;
  const from = `${collection}?watch=true&resourceVersion=${revision}`;
  const sentMs = new Map<string, number>();
  const samples: number[] = [];
  const watches = Array.from({ length: watchers }, () =>
    follow(target, from, (event) => {
      const sent = sentMs.get(event.object.metadata.name);
      if (sent !== undefined) samples.push(performance.now() - sent);
    }),
  );
  await Promise.all(watches.map((watch) => watch.opened));
  for (let index = 0; index < 50; index++) {
    const name = `watched-${index}`;
    sentMs.set(name, performance.now());
    await connection?.ask("POST", collection, manifest(name));
    // One at a time: latency is asked for, not throughput.
    while (samples.length < (index + 1) * watchers) await immediate();
  }
  for (const watch of watches) watch.stop();
  const spread = spreadOf(samples);
  show(`${target.name}: watch, ${watchers} watchers`, {
    "p50 ms": spread.p50,
    "p99 ms": spread.p99,
  });
}

function immediate(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** About 2 KB, as a real manifest with its annotations is. */
function manifest(name: string): string {
  return JSON.stringify({
    apiVersion: "berth.dev/v1alpha1",
    kind: "VMClass",
    metadata: {
      name,
      labels: { app: "bench", tier: "web" },
      annotations: { "example.com/note": "x".repeat(1_500) },
    },
    spec: { cpu: { cores: 2 }, memory: { size: "2Gi" } },
  });
}

function residentMegabytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024;
}

function peerOf(kubeconfig: string): Target {
  const config = parse(readFileSync(kubeconfig, "utf8"));
  const cluster = config.clusters[0].cluster;
  const ca = Buffer.from(cluster["certificate-authority-data"] ?? "", "base64").toString();
  return { name: "peer", url: cluster.server, ca, token: config.users[0].user.token };
}
