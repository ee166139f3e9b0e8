import { VirtualClock } from "../src/kernel/virtual-clock.ts";
import {
  type ApiResponse,
  type ClusterState,
  ProxmoxModel,
  smallCluster,
  tokenName,
  tokenUser,
} from "../src/sim/index.ts";
import { seededRandom } from "../src/sim/seeded-random.ts";

export const tokenSecret = "00000000-0000-4000-8000-000000000001";
export const authorization = `PVEAPIToken=${tokenUser}!${tokenName}=${tokenSecret}`;

const gib = 1024 ** 3;

export function nodeNames(count: number): string[] {
  return Array.from({ length: count }, (_, index) => `pve${index + 1}`);
}

/** The node of the VM with this index: they are dealt out one by one. */
export function nodeOfIndex(index: number, nodes: number): string {
  return `pve${(index % nodes) + 1}`;
}

export const firstId = 1_000;

/** A cluster in which somebody made so many VMs, each with a disk and a cloud-init drive. */
export function bigCluster(nodes: number, vms: number): ClusterState {
  const clock = new VirtualClock();
  const state = smallCluster({
    release: "9.2",
    nodes: nodeNames(nodes),
    clock,
    random: seededRandom(1),
    password: "secret",
    tokenSecret,
  });
  for (let index = 0; index < vms; index++) addVm(state, index, nodeOfIndex(index, nodes));
  for (const backing of Object.keys(state.capacities)) state.capacities[backing] = 1e9 * gib;
  return state;
}

function addVm(state: ClusterState, index: number, node: string): void {
  const vmid = firstId + index;
  const text = [
    "agent: 1",
    "boot: order=scsi0",
    "cores: 2",
    `description: made for measuring%0Avm ${index}`,
    `ide2: local-zfs:vm-${vmid}-cloudinit,media=cdrom`,
    "ipconfig0: ip=dhcp",
    "memory: 2048",
    "meta: creation-qemu=10.1.2,ctime=1767323045",
    `name: vm-${index}`,
    `net0: virtio=BC:24:11:00:00:01,bridge=vmbr0`,
    `scsi0: local-zfs:vm-${vmid}-disk-0,size=10G`,
    "scsihw: virtio-scsi-single",
    `smbios1: uuid=00000000-0000-4000-8000-${String(vmid).padStart(12, "0")}`,
    "tags: berth",
  ].join("\n");
  state.guests[String(vmid)] = { node, text: `${text}\n` };
  const common = { content: "images", format: "raw", createdMs: 1_767_323_045_000, vmid } as const;
  const backing = `${node}:rpool/data`;
  const volumes = state.volumes[backing] ?? [];
  state.volumes[backing] = volumes;
  volumes.push(
    { name: `vm-${vmid}-disk-0`, ...common, sizeBytes: 10 * gib, usedBytes: gib, data: "debian" },
    { name: `vm-${vmid}-cloudinit`, ...common, sizeBytes: 4 * 1024 ** 2, usedBytes: 0 },
  );
  const home = state.nodes.find(({ name }) => name === node);
  if (home === undefined || index % 2 === 1) return;
  const guest = { agent: "running", agentAfterMs: 5_000, obeysShutdown: true } as const;
  const startedMs = 1_767_323_045_000;
  home.machines[String(vmid)] = { pid: 10_000 + index, startedMs, isPaused: false, guest };
}

export type Form = Readonly<Record<string, string>>;

/** A model on a virtual clock, and a client that lets time pass until it is answered. */
export class Rig {
  readonly clock = new VirtualClock();
  readonly model: ProxmoxModel;
  requests = 0;

  constructor(state?: ClusterState) {
    const { clock } = this;
    const random = seededRandom(7);
    const world = { nodes: nodeNames(3), clock, random, password: "secret", tokenSecret };
    const begin = state ?? smallCluster({ release: "9.2", ...world });
    this.model = new ProxmoxModel({ state: begin, clock, random });
  }

  async send(method: string, path: string, form: Form = {}): Promise<unknown> {
    this.requests++;
    const { status, reason, body } = await this.#settle(
      this.model.send({
        method,
        path: `/api2/json${path}`,
        headers: { authorization, "content-type": "application/x-www-form-urlencoded" },
        ...(method === "GET" || method === "DELETE" ? {} : { body: formOf(form) }),
      }),
    );
    if (status !== 200) throw new Error(`${method} ${path}: ${status} ${reason}`);
    return JSON.parse(body).data;
  }

  /** A call that makes a task, and the polls until that has ended well. */
  async does(method: string, path: string, form: Form = {}): Promise<void> {
    const upid = String(await this.send(method, path, form));
    const node = upid.split(":")[1] ?? "";
    for (;;) {
      const task = await this.send(
        "GET",
        `/nodes/${node}/tasks/${encodeURIComponent(upid)}/status`,
      );
      const { status, exitstatus } = task as { status: string; exitstatus?: string };
      if (status === "stopped" && exitstatus !== "OK") throw new Error(`${upid}: ${exitstatus}`);
      if (status === "stopped") return;
      this.clock.advance(500);
    }
  }

  async #settle(sent: Promise<ApiResponse>): Promise<ApiResponse> {
    const end = { isReached: false };
    const over = (): void => void (end.isReached = true);
    sent.then(over, over);
    for (;;) {
      for (let ticks = 0; ticks < 8 && !end.isReached; ticks++) await Promise.resolve();
      if (end.isReached) return await sent;
      this.clock.advance(this.clock.nextInMs() ?? 0);
    }
  }
}

export function formOf(form: Form): string {
  return Object.entries(form)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`)
    .join("&");
}
