import type { Clock } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import { Rights } from "./access/rights.ts";
import { digestOf, formatConfig, type GuestConfig, parseConfig } from "./config-file.ts";
import { PveError } from "./errors.ts";
import { FaultBook } from "./faults.ts";
import type { Fetched } from "./fetcher.ts";
import { type Process, ProcessTable, work } from "./process.ts";
import { type Quirks, quirksOf } from "./release.ts";
import { StatusBoard } from "./status-board.ts";
import type { ClusterState, MachineState, NodeState } from "./state.ts";
import { type Timing, varied } from "./timing.ts";

export interface ClusterOptions {
  readonly state: ClusterState;
  readonly clock: Clock;
  readonly random: Random;
  readonly timing: Timing;
  /** Gets what download-url asks for; without it every address is unreachable. */
  readonly fetch?: (url: string) => Promise<Fetched>;
}

/**
 * The cluster as its own programs see it: files under /etc/pve, processes, flocks, the state of the
 * machines. It decides nothing; the endpoints and workers do.
 */
export class Cluster {
  readonly state: ClusterState;
  readonly clock: Clock;
  readonly random: Random;
  readonly processes: ProcessTable;
  readonly rights: Rights;
  readonly quirks: Quirks;
  readonly faults: FaultBook;
  readonly board: StatusBoard;
  readonly fetch: (url: string) => Promise<Fetched>;
  timing: Timing;
  /** Every allocation and copy takes so much longer. */
  slowStorageMs = 0;
  #parsed = new Map<string, { readonly text: string; readonly config: GuestConfig }>();

  constructor(options: ClusterOptions) {
    this.state = options.state;
    this.clock = options.clock;
    this.random = options.random;
    this.timing = options.timing;
    this.quirks = quirksOf(this.state.release);
    this.rights = new Rights(this.state);
    this.processes = new ProcessTable(options.clock);
    this.faults = new FaultBook();
    this.processes.watch((info, step) => this.faults.verdict(info, step));
    this.board = new StatusBoard(this);
    this.fetch = options.fetch ?? (async () => ({ kind: "unreachable" }));
  }

  /** A point between two effects. */
  *step(name: string): Process<void> {
    yield* work(name, varied(this.random, this.timing.stepMs));
  }

  nextPid(): number {
    return this.state.nextPid++;
  }

  // Nodes.

  findNode(name: string): NodeState | undefined {
    return this.state.nodes.find((node) => node.name === name);
  }

  node(name: string): NodeState {
    const found = this.findNode(name);
    if (found !== undefined) return found;
    const what = `failed to get address info for: ${name}: Name or service not known`;
    throw new PveError(`hostname lookup '${name}' failed - ${what}`);
  }

  isQuorate(): boolean {
    if (this.faults.hasNoQuorum) return false;
    const online = this.state.nodes.filter((node) => node.isOnline).length;
    return online * 2 > this.state.nodes.length;
  }

  demandQuorum(): void {
    if (!this.isQuorate()) throw new PveError("cluster not ready - no quorum?");
  }

  // Guests' configuration files.

  nodeOfGuest(vmid: number): string | undefined {
    return this.state.guests[String(vmid)]?.node;
  }

  hasGuest(node: string, vmid: number): boolean {
    return this.nodeOfGuest(vmid) === node;
  }

  /** The text of the file; a guest that is elsewhere, or nowhere, has none here. */
  guestText(node: string, vmid: number): string {
    const file = this.state.guests[String(vmid)];
    if (file?.node === node) return file.text;
    const path = `nodes/${node}/qemu-server/${vmid}.conf`;
    throw new PveError(`Configuration file '${path}' does not exist`);
  }

  /** The file, read. It is shared: copy it before changing it. */
  readGuest(node: string, vmid: number): GuestConfig {
    const text = this.guestText(node, vmid);
    const known = this.#parsed.get(String(vmid));
    if (known?.text === text) return known.config;
    const config = parseConfig(text);
    this.#parsed.set(String(vmid), { text, config });
    return config;
  }

  digest(node: string, vmid: number): string {
    return digestOf(this.guestText(node, vmid));
  }

  writeGuest(node: string, vmid: number, config: GuestConfig): void {
    this.writeText(node, vmid, formatConfig(config));
  }

  writeText(node: string, vmid: number, text: string): void {
    this.#demandWritable(`${node}/qemu-server/${vmid}.conf`);
    this.state.guests[String(vmid)] = { node, text };
    this.board.touch(vmid);
  }

  removeGuest(vmid: number): void {
    const file = this.state.guests[String(vmid)];
    if (file === undefined) return;
    this.#demandWritable(`${file.node}/qemu-server/${vmid}.conf`);
    Reflect.deleteProperty(this.state.guests, String(vmid));
    this.#parsed.delete(String(vmid));
    this.board.forget(vmid);
  }

  #demandWritable(path: string): void {
    if (this.isQuorate()) return;
    const file = `/etc/pve/nodes/${path}.tmp.${this.state.nextPid}`;
    throw new PveError(`unable to open file '${file}' - Permission denied`);
  }

  // Machines: the QEMU processes.

  machine(vmid: number): MachineState | undefined {
    const node = this.nodeOfGuest(vmid);
    return node === undefined ? undefined : this.findNode(node)?.machines[String(vmid)];
  }

  isRunning(node: string, vmid: number): boolean {
    return this.node(node).machines[String(vmid)] !== undefined;
  }

  setMachine(node: string, vmid: number, machine: MachineState | undefined): void {
    const { machines } = this.node(node);
    if (machine === undefined) Reflect.deleteProperty(machines, String(vmid));
    else machines[String(vmid)] = machine;
    this.board.touch(vmid);
  }
}
