/**
 * 1,000 VirtualMachines at once on five nodes: how near Berth comes to the cluster's own limits.
 *
 * Three runs, each with machines of the same shape on a simulated Proxmox cluster of the same
 * latencies (src/sim/proxmox/timing.ts), whose every node has the image:
 *
 * - virtual: Berth, its API and the cluster on one virtual clock, with 10 ms for each call's way.
 *   What takes time is the cluster and the wire alone, so the figures are the same every time.
 *   Ten minutes of rest follow. Beside it stands a driver that does nothing but the calls that a
 *   machine needs, and looks at each task a hundred times in a second.
 * - process: a real `berth up` and the cluster in processes of their own, with HTTPS between them,
 *   in real time. Only Berth's processor time is counted; other work on the machine slows it down.
 * - peer: the Terraform provider bpg/proxmox with fewer of the same machines, and Berth with as
 *   many, as processes.
 *
 * The bound is the storage: each node copies onto its own storage, as many at once as the
 * Hypervisor has slots for it (1). Nothing can be faster than the busiest storage, copy after copy
 * without a pause; how long each copy took is the cluster's own record. The share is that time by
 * the time from the first apply to the last machine that is Ready.
 * Usage: npm run bench -- thousand [--machines 1000] [--nodes 5] [--peers 50] [--rest 60]
 *        [--only virtual|process|peer]
 */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { nodeNames } from "./simulator-world.ts";
import { measureAlone } from "./thousand-alone.ts";
import { measureProcess } from "./thousand-process.ts";
import { measureVirtual } from "./thousand-virtual.ts";

const { values } = parseArgs({
  options: {
    machines: { type: "string", default: "1000" },
    nodes: { type: "string", default: "5" },
    peers: { type: "string", default: "50" },
    rest: { type: "string", default: "60" },
    only: { type: "string" },
  },
});
const nodes = nodeNames(Number(values.nodes));
const machines = Number(values.machines);
const peers = Number(values.peers);
const restMs = Number(values.rest) * 1000;

if (isAsked("virtual")) {
  await measureVirtual({ nodes, machines, restMs: 600_000 });
  await measureAlone({ nodes, machines });
}
if (isAsked("process")) await measureProcess({ nodes, machines, restMs });
if (isAsked("peer")) {
  await measureProcess({ nodes, machines: peers, restMs: 0 });
  const provider = join(import.meta.dirname, "bpg.ts");
  const args = [provider, String(peers), "9.2", String(nodes.length)];
  spawnSync(process.execPath, args, { stdio: "inherit" });
}

function isAsked(run: string): boolean {
  return values.only === undefined || values.only === run;
}
