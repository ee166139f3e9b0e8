/**
 * The Proxmox simulator: requests per second in process and over HTTPS, memory, its data file.
 *
 * The large cluster has 50 nodes and 10,000 VMs, each with two volumes, half of them running.
 * Times of the model are processor time, those of the server are what a client waits.
 * Usage: npm run bench -- simulator [--nodes 50] [--vms 10000]
 */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { systemClock, systemRandom } from "../src/app/system.ts";
import { startProxmoxSimulator } from "../src/sim/index.ts";
import {
  authorization,
  bigCluster,
  firstId,
  nodeOfIndex,
  Rig,
  tokenSecret,
} from "./simulator-world.ts";
import { show, spreadOf, timeEach } from "./support.ts";

const { values } = parseArgs({
  options: {
    nodes: { type: "string", default: "50" },
    vms: { type: "string", default: "10000" },
    /** The benchmark starts itself with this: to be the server, in a process of its own. */
    serve: { type: "string" },
  },
});
const nodes = Number(values.nodes);
const vms = Number(values.vms);
const image = "local:import/debian-12-generic-amd64.qcow2";

if (values.serve === undefined) await main();
else await serve(values.serve);

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "berth-bench-"));
  try {
    await measureSmall();
    await measureLarge();
    await measureServer(join(folder, "cluster.json"));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** What the deterministic simulation does: many small clusters, each with a short life. */
async function measureSmall(): Promise<void> {
  for (let round = 0; round < 50; round++) await lifeOfThree();
  const batches: { us: number; perSecond: number }[] = [];
  for (let batch = 0; batch < 10; batch++) batches.push(await measureLives(50));
  const [best] = batches.toSorted((left, right) => left.us - right.us);
  const mean = batches.reduce((sum, { us }) => sum + us, 0) / batches.length;
  show("in process, 3 VMs made, run, destroyed", {
    "us per request": mean,
    "at best": best?.us ?? 0,
    "creations and destroys/s at best": best?.perSecond ?? 0,
  });
  const sinceUs = processorUs();
  for (let round = 0; round < 1_000; round++) void new Rig();
  show("in process, a new small cluster", { us: (processorUs() - sinceUs) / 1_000 });
}

async function measureLives(rounds: number): Promise<{ us: number; perSecond: number }> {
  const sinceUs = processorUs();
  let requests = 0;
  for (let round = 0; round < rounds; round++) requests += await lifeOfThree();
  const us = processorUs() - sinceUs;
  return { us: us / requests, perSecond: (3 * rounds * 1e6) / us };
}

async function lifeOfThree(): Promise<number> {
  const rig = new Rig();
  const own = (vmid: number): string => `/nodes/pve1/qemu/${vmid}`;
  const ids = [101, 102, 103];
  for (const vmid of ids) {
    await rig.does("POST", "/nodes/pve1/qemu", {
      vmid: String(vmid),
      name: `vm-${vmid}`,
      cores: "2",
      memory: "2048",
      agent: "1",
      scsi0: `local-zfs:0,import-from=${image}`,
      ide2: "local-zfs:cloudinit",
      net0: "virtio,bridge=vmbr0",
      ipconfig0: "ip=dhcp",
      description: "made for measuring\nin two lines",
    });
    await rig.does("PUT", `${own(vmid)}/resize`, { disk: "scsi0", size: "10G" });
    await rig.send("PUT", `${own(vmid)}/config`, { cores: "4" });
    await rig.send("GET", `${own(vmid)}/config`);
  }
  await rig.send("GET", "/cluster/resources");
  for (const vmid of ids) {
    await rig.does("POST", `${own(vmid)}/status/start`);
    await rig.send("GET", `${own(vmid)}/status/current`);
    await rig.does("POST", `${own(vmid)}/status/stop`);
    await rig.does("DELETE", own(vmid));
  }
  await rig.send("GET", "/cluster/resources");
  return rig.requests;
}

async function measureLarge(): Promise<void> {
  const rig = new Rig(bigCluster(nodes, vms));
  const title = `in process, ${nodes} nodes, ${vms} VMs`;
  const count = 20_000;
  for (let index = 0; index < 2_000; index++) await rig.send(...mixed(index));
  let sinceUs = processorUs();
  for (let index = 0; index < count; index++) await rig.send(...mixed(index));
  show(`${title}: mixed`, { "requests/s": (count * 1e6) / (processorUs() - sinceUs) });
  const samplesMs: number[] = [];
  for (let round = 0; round < 20; round++) {
    rig.clock.advance(1_000);
    sinceUs = processorUs();
    await rig.send("GET", "/cluster/resources");
    samplesMs.push((processorUs() - sinceUs) / 1_000);
  }
  show(`${title}: /cluster/resources`, { ...spreadOf(samplesMs), unit: "ms" });
}

/** Four reads for one write, each of another VM. */
function mixed(index: number): [string, string, Readonly<Record<string, string>>?] {
  const place = (index * 7) % vms;
  const own = `/nodes/${nodeOfIndex(place, nodes)}/qemu/${firstId + place}`;
  switch (index % 5) {
    case 0:
      return ["PUT", `${own}/config`, { description: `changed ${index}` }];
    case 1:
      return ["GET", `/nodes/${nodeOfIndex(place, nodes)}/tasks?limit=10`];
    case 2:
      return ["GET", `${own}/status/current`];
    default:
      return ["GET", `${own}/config`];
  }
}

async function measureServer(file: string): Promise<void> {
  await writeDataFile(file);
  const server = await startServer(file);
  const title = `served, with a data file`;
  show(`${title}: start`, {
    ms: server.startMs,
    "file MB": statSync(file).size / 1024 ** 2,
    "RSS MB": residentMegabytes(server.pid),
  });
  try {
    const ask = clientOf(server);
    await timeEach(500, 16, (index) => ask(...mixed(index)));
    const many = await timeEach(5_000, 16, (index) => ask(...mixed(index)));
    const rate = 5_000_000 / many.totalMs;
    show(`${title}: mixed`, { "requests/s": rate, ...spreadOf(many.samplesMs), unit: "ms" });
    const writes = await timeEach(500, 1, (index) => ask(...mixed(index * 5)));
    show(`${title}: one write`, { ...spreadOf(writes.samplesMs), unit: "ms" });
    const reads = await timeEach(500, 1, (index) => ask(...mixed(index * 5 + 3)));
    show(`${title}: one read`, { ...spreadOf(reads.samplesMs), unit: "ms" });
    const lists = await timeEach(20, 1, () => ask("GET", "/cluster/resources"));
    show(`${title}: /cluster/resources`, { ...spreadOf(lists.samplesMs), unit: "ms" });
    show(`${title}: memory`, { "RSS MB": residentMegabytes(server.pid) });
  } finally {
    server.stop();
  }
}

/** A data file of the large cluster, with the keys and certificates of a small one. */
async function writeDataFile(file: string): Promise<void> {
  const environment = { clock: systemClock, random: systemRandom };
  const small = await startProxmoxSimulator({
    port: 0,
    version: "9.2",
    dataFile: file,
    ...environment,
  });
  await small.close();
  const kept = JSON.parse(readFileSync(file, "utf8").split("\n")[0] ?? "{}") as object;
  writeFileSync(file, JSON.stringify({ ...kept, tokenSecret, state: bigCluster(nodes, vms) }));
}

async function serve(dataFile: string): Promise<void> {
  const sinceMs = performance.now();
  const simulator = await startProxmoxSimulator({
    port: 0,
    version: "9.2",
    clock: systemClock,
    random: systemRandom,
    dataFile,
    // The simulator's own work is to be seen, not the time that it pretends to take.
    timing: { stepMs: 0 },
  });
  const { url, ca } = simulator;
  process.stdout.write(JSON.stringify({ url, ca, startMs: performance.now() - sinceMs }));
  process.stdout.end();
}

interface Server {
  readonly url: string;
  readonly ca: string;
  readonly startMs: number;
  readonly pid: number;
  stop(): void;
}

async function startServer(file: string): Promise<Server> {
  const child = spawn(process.execPath, [import.meta.filename, "--serve", file], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  for await (const chunk of child.stdout) text += String(chunk);
  const told = JSON.parse(text) as { url: string; ca: string; startMs: number };
  return { ...told, pid: child.pid ?? 0, stop: () => void child.kill("SIGKILL") };
}

type Ask = (method: string, path: string, form?: Readonly<Record<string, string>>) => Promise<void>;

function clientOf({ url, ca }: Server): Ask {
  const agent = new Agent({ keepAlive: true, maxSockets: 16, ca });
  return (method, path, form) => {
    return new Promise((resolve, reject) => {
      const headers = { authorization };
      const sent = request(`${url}/api2/json${path}`, { method, agent, headers }, (response) => {
        response.resume();
        response.on("error", reject);
        response.on("end", () => {
          if (response.statusCode === 200) resolve();
          else reject(new Error(`${method} ${path}: ${response.statusCode}`));
        });
      });
      sent.on("error", reject);
      sent.end(form === undefined ? undefined : new URLSearchParams(form).toString());
    });
  };
}

function processorUs(): number {
  const { user, system } = process.cpuUsage();
  return user + system;
}

function residentMegabytes(pid: number): number {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? "0") / 1024;
}
