import type { Clock } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import { Cluster } from "./cluster.ts";
import type { FaultBook } from "./faults.ts";
import type { Fetched } from "./fetcher.ts";
import { Api } from "./http/api.ts";
import type { ApiRequest, ApiResponse } from "./http/message.ts";
import type { Release } from "./release.ts";
import type { ClusterState, Volume } from "./state.ts";
import { parseVolumeId } from "./storage/names.ts";
import { findVolume, storageConfig, volumesOf } from "./storage/storages.ts";
import { abandonTasks } from "./tasks.ts";
import { realTiming, type Timing } from "./timing.ts";
import { watchHa } from "./vm/ha-manager.ts";

export interface ModelOptions {
  readonly state: ClusterState;
  readonly clock: Clock;
  readonly random: Random;
  readonly timing?: Partial<Timing>;
  readonly fetch?: (url: string) => Promise<Fetched>;
}

/**
 * A Proxmox VE cluster. `send` is its HTTP API; everything else is what can happen to a cluster
 * from outside: faults, strangers, power. The same options give the same behaviour.
 */
export class ProxmoxModel {
  readonly cluster: Cluster;
  readonly #api: Api;

  constructor({ timing, ...options }: ModelOptions) {
    this.cluster = new Cluster({ ...options, timing: { ...realTiming, ...timing } });
    this.#api = new Api(this.cluster);
    watchHa(this.cluster);
    for (const vmid of Object.keys(this.cluster.state.guests))
      this.cluster.board.touch(Number(vmid));
  }

  /** One request; rejects with ConnectionLost or ConnectionRefused where no reply comes. */
  send(request: ApiRequest): Promise<ApiResponse> {
    return this.#api.send(request);
  }

  get faults(): FaultBook {
    return this.cluster.faults;
  }

  // What the outside can do to it.

  /** SIGKILL of a task's worker: no clean-up, config locks stay. */
  killWorker(upid: string): boolean {
    const pid = Number.parseInt(upid.split(":")[2] ?? "", 16);
    return this.cluster.processes.kill(pid);
  }

  /** The node loses power: its processes and machines are gone, its disks and config stay. */
  crashNode(name: string): void {
    const node = this.cluster.node(name);
    node.isOnline = false;
    this.cluster.processes.crash(name);
    this.#api.reset(name);
    abandonTasks(node.tasks, this.cluster.clock.nowMs());
    for (const vmid of Object.keys(node.machines)) {
      this.cluster.setMachine(name, Number(vmid), undefined);
    }
    this.cluster.wakeHa();
  }

  startNode(name: string): void {
    const node = this.cluster.node(name);
    node.isOnline = true;
    node.bootedMs = this.cluster.clock.nowMs();
  }

  /** Another release is installed on every node, beside machines and workers that go on. */
  upgrade(release: Release): void {
    this.cluster.state.release = release;
  }

  /** A guest's QEMU dies. */
  killMachine(vmid: number): void {
    const node = this.cluster.nodeOfGuest(vmid);
    if (node !== undefined) this.cluster.setMachine(node, vmid, undefined);
  }

  /** How much a storage holds: less than it has taken means that it is full. */
  setCapacity(backing: string, bytes: number): void {
    this.cluster.state.capacities[backing] = bytes;
  }

  /** Puts a storage of this cluster on the disks of another: both see, name and free the same. */
  share(other: ProxmoxModel, backing: string): void {
    const volumes = other.cluster.state.volumes[backing] ?? [];
    other.cluster.state.volumes[backing] = volumes;
    this.cluster.state.volumes[backing] = volumes;
  }

  /** A person or another program writes a guest's file: takes an id, edits, sets a lock. */
  writeGuestFile(node: string, vmid: number, text: string): void {
    this.cluster.writeText(node, vmid, text);
  }

  /** A person removes a guest's file and leaves its volumes behind. */
  removeGuestFile(vmid: number): void {
    this.cluster.removeGuest(vmid);
  }

  setLock(vmid: number, lock: string | undefined): void {
    const file = this.cluster.state.guests[String(vmid)];
    if (file === undefined) return;
    const rest = file.text.replaceAll(/^lock:.*\n/gm, "");
    const text = lock === undefined ? rest : `lock: ${lock}\n${rest}`;
    this.cluster.writeText(file.node, vmid, text);
  }

  volume(node: string, volid: string): Volume | undefined {
    return findVolume(this.cluster, node, volid).volume;
  }

  /** A volume's data vanishes; configs go on naming it. */
  removeVolume(node: string, volid: string): void {
    const { storage } = parseVolumeId(volid);
    const volumes = volumesOf(this.cluster, storageConfig(this.cluster, storage), node);
    const { volume } = findVolume(this.cluster, node, volid);
    if (volume !== undefined) volumes.splice(volumes.indexOf(volume), 1);
  }

  corruptVolume(node: string, volid: string): void {
    const { volume } = findVolume(this.cluster, node, volid);
    if (volume !== undefined) volume.isCorrupt = true;
  }

  // Durable state.

  /** All that a power loss leaves, as text. */
  save(): string {
    return JSON.stringify(this.cluster.state);
  }

  /** A cluster from what was saved: workers that were under way have ended without a word. */
  static load(text: string, options: Omit<ModelOptions, "state">): ProxmoxModel {
    // cast: the text is what save() wrote.
    return ProxmoxModel.resume(JSON.parse(text) as ClusterState, options);
  }

  /** The same of its state, which it goes on with: nobody else may use it any more. */
  static resume(state: ClusterState, options: Omit<ModelOptions, "state">): ProxmoxModel {
    for (const node of state.nodes) abandonTasks(node.tasks, options.clock.nowMs());
    return new ProxmoxModel({ ...options, state });
  }
}
