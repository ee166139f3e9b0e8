import type { Clock } from "../../kernel/clock.ts";
import type { Random } from "../../kernel/random.ts";
import { Rights } from "./access/rights.ts";
import { digestOf, formatConfig, type GuestConfig, parseConfig } from "./config-file.ts";
import { PveError } from "./errors.ts";
import { FaultBook } from "./faults.ts";
import type { Fetched } from "./fetcher.ts";
import { type Process, ProcessTable } from "./process.ts";
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

/** What may have changed, of the parts of the state that are large. */
export interface Touched {
  /** Guests whose files were written or removed. */
  readonly guests: Set<string>;
  /** Machines by node that somebody got hold of, or set. */
  readonly machines: Map<string, Set<string>>;
  /** Backings whose volumes somebody got hold of. */
  readonly backings: Set<string>;
}

/** A guest's file; what is made of its text is made when it is asked for. */
interface ReadFile {
  readonly text: string;
  config?: GuestConfig;
  digest?: string;
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
  readonly faults: FaultBook;
  readonly board: StatusBoard;
  readonly fetch: (url: string) => Promise<Fetched>;
  timing: Timing;
  /** Tells the HA manager that there may be something to do; nobody listens without one. */
  wakeHa: () => void = () => undefined;
  /** Every allocation and copy takes so much longer. */
  slowStorageMs = 0;
  /** Whoever keeps the state looks here for what to look at, and empties it. */
  readonly touched: Touched = { guests: new Set(), machines: new Map(), backings: new Set() };
  /** By what a volume was replaced: its copy on another node or storage, once that is used. */
  readonly heirs = new WeakMap<object, object>();
  /** Guests' files as they were last read. A file's text decides all else about it. */
  readonly #read = new Map<number, ReadFile>();
  #callbacks = 0;
  readonly #nodesByName = new Map<string, NodeState>();

  constructor(options: ClusterOptions) {
    this.state = options.state;
    this.clock = this.#counting(options.clock);
    this.random = options.random;
    this.timing = options.timing;
    this.rights = new Rights(this.state);
    this.processes = new ProcessTable(options.clock);
    this.faults = new FaultBook();
    this.processes.watch((info, step) => this.faults.verdict(info, step));
    this.board = new StatusBoard(this);
    this.fetch = options.fetch ?? (async () => ({ kind: "unreachable" }));
  }

  /** As the release has them, which an upgrade changes. */
  get quirks(): Quirks {
    return quirksOf(this.state.release);
  }

  /** A point between two effects. */
  *step(name: string): Process<void> {
    // Not by way of work(): there are many steps, and each generator costs.
    yield { kind: "work", name, durationMs: varied(this.random, this.timing.stepMs) };
  }

  /**
   * Counts up with whatever may have changed the state: as long as it is the same, so is the state.
   * Only what somebody outside does to the state by hand is not counted.
   */
  get activity(): number {
    return this.processes.effects + this.#callbacks;
  }

  /** What is not done by a process is done by a timer: by the HA manager, for one. */
  #counting(clock: Clock): Clock {
    return {
      nowMs: () => clock.nowMs(),
      monotonicMs: () => clock.monotonicMs(),
      bootId: clock.bootId,
      after: (delayMs, callback) =>
        clock.after(delayMs, () => {
          this.#callbacks++;
          callback();
        }),
    };
  }

  nextPid(): number {
    return this.state.nextPid++;
  }

  // Nodes.

  findNode(name: string): NodeState | undefined {
    const { nodes } = this.state;
    if (this.#nodesByName.size !== nodes.length) {
      for (const node of nodes) this.#nodesByName.set(node.name, node);
    }
    return this.#nodesByName.get(name);
  }

  node(name: string): NodeState {
    const found = this.findNode(name);
    if (found !== undefined) return found;
    const what = `failed to get address info for: ${name}: Name or service not known`;
    throw new PveError(`hostname lookup '${name}' failed - ${what}`);
  }

  /** What the clock of a node says now. */
  nodeTimeMs(name: string): number {
    return this.clock.nowMs() + (this.findNode(name)?.clockAheadMs ?? 0);
  }

  /** Sets the clocks of some nodes, or of all. Tasks that have begun keep their times. */
  setClocks(aheadMs: number, names = this.state.nodes.map(({ name }) => name)): void {
    for (const name of names) this.node(name).clockAheadMs = aheadMs;
  }

  isQuorate(): boolean {
    if (this.faults.hasNoQuorum) return false;
    let online = 0;
    for (const node of this.state.nodes) if (node.isOnline) online++;
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
    const file = this.#readFile(vmid, this.guestText(node, vmid));
    return (file.config ??= parseConfig(file.text));
  }

  digest(node: string, vmid: number): string {
    const file = this.#readFile(vmid, this.guestText(node, vmid));
    return (file.digest ??= digestOf(file.text));
  }

  #readFile(vmid: number, text: string): ReadFile {
    const known = this.#read.get(vmid);
    if (known?.text === text) return known;
    const file: ReadFile = { text };
    this.#read.set(vmid, file);
    return file;
  }

  writeGuest(node: string, vmid: number, config: GuestConfig): void {
    this.writeText(node, vmid, formatConfig(config));
  }

  writeText(node: string, vmid: number, text: string): void {
    this.#demandWritable(`${node}/qemu-server/${vmid}.conf`);
    this.state.guests[String(vmid)] = { node, text };
    this.touched.guests.add(String(vmid));
    this.board.touch(vmid);
  }

  removeGuest(vmid: number): void {
    const file = this.state.guests[String(vmid)];
    if (file === undefined) return;
    this.#demandWritable(`${file.node}/qemu-server/${vmid}.conf`);
    Reflect.deleteProperty(this.state.guests, String(vmid));
    this.touched.guests.add(String(vmid));
    this.#read.delete(vmid);
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
    if (node === undefined) return undefined;
    const machine = this.findNode(node)?.machines[String(vmid)];
    if (machine !== undefined) this.#touchMachine(node, vmid);
    return machine;
  }

  #touchMachine(node: string, vmid: number): void {
    const known = this.touched.machines.get(node);
    if (known === undefined) this.touched.machines.set(node, new Set([String(vmid)]));
    else known.add(String(vmid));
  }

  isRunning(node: string, vmid: number): boolean {
    return this.node(node).machines[String(vmid)] !== undefined;
  }

  setMachine(node: string, vmid: number, machine: MachineState | undefined): void {
    const { machines } = this.node(node);
    if (machine === undefined) Reflect.deleteProperty(machines, String(vmid));
    else machines[String(vmid)] = machine;
    this.#touchMachine(node, vmid);
    this.board.touch(vmid);
    if (this.state.ha[`vm:${vmid}`] !== undefined) this.wakeHa();
  }
}
