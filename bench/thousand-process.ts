import { loadavg } from "node:os";
import { setTimeout } from "node:timers/promises";
import { type Berth, startBerth, temporaryFolder } from "../test/real/support/berth.ts";
import { bodyOf, connect, follow, type Http } from "../test/real/support/http.ts";
import {
  api,
  create,
  declareImage,
  declareSecret,
  type Door,
  hypervisorOf,
  machineOf,
  machines as machinesPath,
} from "../test/real/support/lab.ts";
import { residentBytes, show, usedCpuMs } from "./support.ts";
import { type ClusterProcess, startCluster } from "./thousand-cluster.ts";
import { type RunOptions, showCalls, showCluster } from "./thousand-figures.ts";

/** Sent at once by one client. */
const sendersMax = 20;
const settleMs = 30_000;

export async function measureProcess(options: RunOptions): Promise<void> {
  const { nodes, machines, restMs } = options;
  const folder = temporaryFolder("bench-thousand");
  const cluster = await startCluster(nodes);
  const berth = await startBerth({ data: folder.path });
  const http = connect(berth);
  try {
    await declare(http, cluster.door);
    await cluster.report();
    const cpuMs = usedCpuMs(berth.pid);
    const beginMs = performance.now();
    await makeAll(berth, http, machines);
    const tookMs = performance.now() - beginMs;
    const name = `processes, ${machines} machines`;
    const { calls, tasks } = await cluster.report();
    showCluster(name, tasks, tookMs);
    showCalls(`${name}: calls`, calls, machines);
    showCpu(`${name}: Berth`, berth, { usedMs: usedCpuMs(berth.pid) - cpuMs, tookMs });
    if (restMs > 0) await rest({ berth, http, cluster }, options);
  } finally {
    http.close();
    await berth.stop();
    cluster.stop();
    folder.remove();
  }
}

async function declare(http: Http, door: Door): Promise<void> {
  await declareSecret(http, "lab", door);
  const { spec, ...head } = { spec: {}, ...hypervisorOf("lab", door) };
  const { idRange: _small, limits: _quick, ...usual } = { idRange: {}, limits: {}, ...spec };
  await create(http, `${api}/hypervisors`, { ...head, spec: usual });
  await declareImage(http, "debian-12", "lab");
}

function machine(name: string): object {
  return machineOf(name, {
    cpu: { cores: 2 },
    memory: { size: "2Gi" },
    disks: [{ name: "root", size: "10Gi" }],
    networks: [{ name: "lan", bridge: "vmbr0" }],
    cloudInit: { user: { name: "ada" } },
  });
}

/** Resolves when all are Ready. */
async function makeAll(berth: Berth, http: Http, count: number): Promise<void> {
  const ready = new Set<string>();
  const all = Promise.withResolvers<void>();
  const watch = follow(berth, `${machinesPath}?watch=true`, ({ object }) => {
    const conditions: { type: string; status: string }[] = object.status?.conditions ?? [];
    const isReady = conditions.some(({ type, status }) => type === "Ready" && status === "True");
    if (isReady) ready.add(object.metadata.name);
    if (ready.size === count) all.resolve();
  });
  await watch.opened;
  void watch.ended.then(() => all.reject(new Error(`the watch ended at ${ready.size} machines`)));
  let next = 0;
  const sender = async (): Promise<void> => {
    while (next < count) await create(http, machinesPath, machine(`vm-${next++}`));
  };
  await Promise.all(Array.from({ length: sendersMax }, sender));
  await all.promise;
  watch.stop();
}

interface Running {
  readonly berth: Berth;
  readonly http: Http;
  readonly cluster: ClusterProcess;
}

/** Nothing changes: what is asked and written all the same. */
async function rest(
  { berth, http, cluster }: Running,
  { machines, restMs }: RunOptions,
): Promise<void> {
  await setTimeout(settleMs);
  await cluster.report();
  const leases = "/apis/coordination.k8s.io/v1/leases";
  let renewals = 0;
  const from = await revisionOf(http, leases);
  const path = `${leases}?watch=true&resourceVersion=${from}`;
  const watch = follow(berth, path, ({ type }) => void (renewals += type === "MODIFIED" ? 1 : 0));
  await watch.opened;
  const cpuMs = usedCpuMs(berth.pid);
  await setTimeout(restMs);
  const usedMs = usedCpuMs(berth.pid) - cpuMs;
  const writes = (await revisionOf(http, leases)) - from;
  watch.stop();
  const name = `processes, ${restMs / 1000} s of rest`;
  showCalls(name, (await cluster.report()).calls, machines);
  showCpu(name, berth, { usedMs, tookMs: restMs });
  show("", {
    "writes to the API but Leases": String(writes - renewals),
    "renewals of Leases": String(renewals),
  });
}

/** The store counts every write, of whatever kind. */
async function revisionOf(http: Http, path: string): Promise<number> {
  return Number(bodyOf(await http.ask({ path })).metadata.resourceVersion);
}

function showCpu(
  name: string,
  { pid }: Berth,
  { usedMs, tookMs }: { readonly usedMs: number; readonly tookMs: number },
): void {
  show(name, {
    "CPU s": usedMs / 1000,
    "of one core": `${((100 * usedMs) / tookMs).toFixed(1)} %`,
    "resident MB": residentBytes(pid) / 1e6,
    "load average of the machine": loadavg()[0] ?? 0,
  });
}
