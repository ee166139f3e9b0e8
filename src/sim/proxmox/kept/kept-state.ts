import type { Touched } from "../cluster.ts";
import type {
  ClusterState,
  GuestFile,
  MachineState,
  NodeState,
  TaskState,
  Volume,
} from "../state.ts";
import type { Change, Path } from "./changes.ts";
import { KeptFields, KeptList, KeptRecord } from "./kept-parts.ts";
import { fileLikeness, machineLikeness, taskLikeness, volumeLikeness } from "./likeness.ts";

/**
 * What was last kept of a cluster's state. It finds out itself what has changed since, so that
 * nobody who changes the state can forget to say so.
 */
export class KeptState {
  readonly state: ClusterState;
  readonly #at: Path;
  readonly #fields: KeptFields;
  readonly #guests: KeptRecord<GuestFile, unknown>;
  readonly #nodes: readonly KeptNode[];
  readonly #volumes = new Map<string, KeptList<Volume, unknown>>();

  /** `at` is where the state is in what is written down. */
  constructor(state: ClusterState, at: Path = []) {
    this.state = state;
    this.#at = at;
    this.#fields = new KeptFields(state, ["guests", "nodes", "volumes"]);
    this.#guests = new KeptRecord(fileLikeness, state.guests);
    this.#nodes = state.nodes.map((node) => new KeptNode(node));
    for (const [backing, volumes] of Object.entries(state.volumes)) {
      this.#volumes.set(backing, new KeptList(volumeLikeness, volumes));
    }
  }

  /** Whether changes of it can be told. Nodes neither come nor go; where they do, they cannot. */
  get isComparable(): boolean {
    const { nodes } = this.state;
    const isSame = this.#nodes.every(({ node }, place) => node === nodes[place]);
    return isSame && nodes.length === this.#nodes.length;
  }

  /**
   * What has changed since the last call, in an order in which it can be made again. It refers to
   * the state itself: it must be written down before the state changes any further. Of guests,
   * machines and volumes only what was touched is looked at; everything, if that is not known.
   */
  changes(touched?: Touched): Change[] {
    const changes: Change[] = [];
    const at = this.#at;
    this.#fields.collect(this.state, at, changes);
    const guests = { names: touched?.guests, at: [...at, "guests"] };
    this.#guests.collect(this.state.guests, guests, changes);
    for (const [place, node] of this.#nodes.entries()) {
      node.collect([...at, "nodes", place], touched, changes);
    }
    const known = [...this.#volumes.keys(), ...Object.keys(this.state.volumes)];
    for (const backing of touched?.backings ?? new Set(known)) {
      this.#collectVolumes(backing, changes);
    }
    return changes;
  }

  #collectVolumes(backing: string, changes: Change[]): void {
    const volumes = this.state.volumes[backing];
    const kept = this.#volumes.get(backing);
    const at = [...this.#at, "volumes", backing];
    if (volumes === undefined) {
      if (this.#volumes.delete(backing)) changes.push({ at, remove: true });
    } else if (kept === undefined) {
      this.#volumes.set(backing, new KeptList(volumeLikeness, volumes));
      changes.push({ at, set: volumes });
    } else kept.collect(volumes, at, changes);
  }
}

class KeptNode {
  readonly node: NodeState;
  readonly #fields: KeptFields;
  readonly #machines: KeptRecord<MachineState, unknown>;
  readonly #tasks: KeptList<TaskState, string>;

  constructor(node: NodeState) {
    this.node = node;
    this.#fields = new KeptFields(node, ["machines", "tasks"]);
    this.#machines = new KeptRecord(machineLikeness, node.machines);
    this.#tasks = new KeptList(taskLikeness, node.tasks);
  }

  collect(at: Path, touched: Touched | undefined, changes: Change[]): void {
    const { name, machines } = this.node;
    this.#fields.collect(this.node, at, changes);
    const names = touched === undefined ? undefined : (touched.machines.get(name) ?? []);
    this.#machines.collect(machines, { names, at: [...at, "machines"] }, changes);
    this.#tasks.collect(this.node.tasks, [...at, "tasks"], changes);
  }
}
