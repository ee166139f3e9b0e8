/**
 * What the Terraform provider bpg/proxmox needs for equal cloud-image VMs on the simulator.
 *
 * Calls and time of apply, of a plan that finds nothing to do, and of destroy. It skips where
 * neither the provider nor Terraform is at hand.
 * Usage: npm run bench -- bpg [VMS] [RELEASE] [NODES]
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { terraform } from "../scripts/real/terraform.ts";
import { Workspace } from "../test/real/clients/terraform.ts";
import { temporaryFolder } from "../test/real/support/berth.ts";
import {
  type Exchange,
  type RecordingProxy,
  startRecordingProxy,
} from "../test/real/support/recording-proxy.ts";
import { startSimulatorProcess } from "../test/real/support/simulator.ts";
import { nodeNames } from "./simulator-world.ts";
import { show } from "./support.ts";

const count = Number(process.argv[2] ?? 10);
const release = process.argv[3] ?? "9.2";
const nodes = nodeNames(Number(process.argv[4] ?? 1));
const missing = terraform.missing();
if (missing === undefined) await run();
else process.stdout.write(`skipped: ${missing}\n`);

async function run(): Promise<void> {
  const folder = temporaryFolder("bench-bpg");
  const simulator = await startSimulatorProcess(release, ["--nodes", nodes.join(",")]);
  const proxy = await startRecordingProxy(simulator);
  try {
    const workspace = new Workspace(join(folder.path, "work"), { url: proxy.url }, simulator);
    workspace.declare(machines());
    await measure(proxy, `apply, ${count} VMs`, async () => {
      const { code, output } = await workspace.apply();
      assert.equal(code, 0, output);
    });
    await measure(proxy, "plan without a change", async () => {
      const { settled, output } = await workspace.isSettled();
      assert.ok(settled, output);
    });
    await measure(proxy, `destroy, ${count} VMs`, async () => {
      const { code, output } = await workspace.destroy();
      assert.equal(code, 0, output);
    });
  } finally {
    await proxy.close();
    await simulator.stop();
    folder.remove();
  }
}

function machines(): string {
  return `
resource "proxmox_virtual_environment_vm" "web" {
  count           = ${count}
  name            = "web-\${count.index}"
  node_name       = "pve\${count.index % ${nodes.length} + 1}"
  stop_on_destroy = true
  cpu { cores = 2 }
  memory { dedicated = 2048 }
  disk {
    datastore_id = "local-zfs"
    import_from  = "local:import/debian-12-generic-amd64.qcow2"
    interface    = "scsi0"
    size         = 10
  }
  network_device { bridge = "vmbr0" }
  initialization {
    datastore_id = "local-zfs"
    ip_config {
      ipv4 { address = "dhcp" }
    }
  }
}
`;
}

async function measure(
  proxy: RecordingProxy,
  name: string,
  work: () => Promise<void>,
): Promise<void> {
  const before = proxy.exchanges.length;
  const connectionsBefore = proxy.connections();
  const beginMs = performance.now();
  await work();
  const seconds = (performance.now() - beginMs) / 1000;
  const calls = proxy.exchanges.slice(before);
  const writes = calls.filter(({ method }) => method !== "GET").length;
  const polls = calls.filter(isTaskPoll).length;
  show(name, {
    seconds,
    calls: String(calls.length),
    "of them writes": String(writes),
    "task polls": String(polls),
    "other reads": String(calls.length - writes - polls),
    failed: String(calls.filter(({ status }) => status >= 400).length),
    connections: String(proxy.connections() - connectionsBefore),
  });
}

function isTaskPoll({ method, path }: Exchange): boolean {
  return method === "GET" && /\/tasks\/[^/]+\/status/.test(path);
}
