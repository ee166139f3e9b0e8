import { answered, failed, releasedMark } from "../../hypervisor/index.ts";
import type {
  Answer,
  Begun,
  ClaimedMachine,
  Draft,
  Failure,
  Fence,
  HypervisorDriver,
  ImageFile,
  Inventory,
  Leftover,
  Lock,
  Machine,
  Mark,
  Operation,
  Power,
  Preflight,
  Seen,
  Shape,
  Survey,
  TaskView,
} from "../../hypervisor/index.ts";
import type { VirtualClock } from "../../kernel/virtual-clock.ts";

/** What happens to one call. Lost: the reply never comes; `before`, and nothing was done. */
export type CallFault = "none" | "lost before" | "lost after" | "refused" | "task fails";

export interface ModelMachine {
  readonly id: string;
  node: string;
  identity: string;
  mark?: Mark;
  shape: Shape;
  disks: { name?: string; slot: string; volume: string; storage: string; sizeBytes: number }[];
  power: Power;
  version: number;
  lock?: Lock;
  /** Reserved and empty, by whom. */
  husk?: "ours" | "stranger";
}

interface ModelTask {
  readonly handle: string;
  readonly does: "Create" | "Configure" | "Grow" | "Start" | "Stop" | "Destroy" | "Other";
  readonly id: string;
  readonly sinceMs: number;
  view: TaskView;
}

interface ModelVolume {
  readonly id: string;
  readonly storage: string;
  readonly owner: string;
  sizeBytes: number;
}

type ModelChange =
  | "addDisk"
  | "grow"
  | "configure"
  | "stamp"
  | "release"
  | "powerOn"
  | "powerOff"
  | "destroy";

const gib = 1024 ** 3;
const away: Failure = { category: "NetworkError", message: "The model does not answer." };

const card = {
  network: "lan",
  device: "eth0",
  addresses: [{ address: "10.0.0.5", prefix: 24 }],
};

/** A hypervisor in memory, with tasks that take time, locks, lost replies and strangers. */
export class ModelHypervisor {
  readonly clock: VirtualClock;
  readonly systemId: string;
  readonly machines = new Map<string, ModelMachine>();
  readonly volumes = new Map<string, ModelVolume>();
  readonly images = new Map<string, ImageFile>();
  readonly tasks: ModelTask[] = [];
  /** Every effect that was asked for, as "kind id". */
  readonly effects: string[] = [];
  calls = 0;
  taskMs = 400;
  isAway = false;
  /** What is said of it while it is away. */
  awayMessage = away.message;
  /** Its list of tasks is lost: nothing can be recalled. */
  isForgetful = false;
  /** Asked at every `begin`. */
  fault: (operation: Operation) => CallFault = () => "none";
  #ids = 100;

  constructor(clock: VirtualClock, systemId = "model-1") {
    this.clock = clock;
    this.systemId = systemId;
    const image = "store:import/debian.qcow2";
    this.images.set(image, { volume: image, fileName: "debian.qcow2", sizeBytes: 2 * gib });
  }

  /** A machine that is nobody's business. */
  addStranger(id: string): ModelMachine {
    const volume = `store:vm-${id}-disk-0`;
    this.volumes.set(volume, { id: volume, storage: "store", owner: id, sizeBytes: gib });
    const machine: ModelMachine = {
      id,
      node: "n1",
      identity: `stranger-${id}`,
      shape: { name: `stranger-${id}` },
      disks: [{ slot: "d0", volume, storage: "store", sizeBytes: gib }],
      power: "Running",
      version: 1,
    };
    this.machines.set(id, machine);
    return machine;
  }

  driver(): HypervisorDriver {
    return {
      system: () =>
        this.#answer(() => ({
          systemId: this.systemId,
          version: "1.0",
          capabilities: ["ImportFromImage", "GrowDisk"] as const,
          findings: [],
        })),
      inventory: () => this.#answer(() => this.#inventory()),
      observe: async (claim) => {
        const seen = await this.#answer(() => this.#observe(claim));
        return seen.ok ? seen.value : { at: "unknown", failure: seen.failure };
      },
      propose: (avoid) => this.#answer(() => this.#propose(new Set(avoid))),
      fit: (shape) => ({ shape, refusals: [] }),
      preflight: async (draft) => this.#preflight(draft),
      begin: (operation, fence) => this.#begin(operation, fence),
      look: async (handle) => {
        const answer = await this.#answer(
          () => this.tasks.find((task) => task.handle === handle)?.view,
        );
        if (!answer.ok) return { state: "unknown", failure: answer.failure };
        return answer.value ?? { state: "lost", cause: "no such task" };
      },
      recall: (claim, sinceMs) =>
        this.#answer(() =>
          this.tasks
            .filter((task) => task.id === claim.externalId && !this.isForgetful)
            .filter(({ view, sinceMs: at }) => view.state === "running" || at >= sinceMs)
            .map(({ handle, does, sinceMs: at, view }) => {
              return { task: handle, does, sinceMs: at, isRunning: view.state === "running" };
            }),
        ),
      leftovers: (claim) => this.#answer(() => this.#leftovers(claim)),
      survey: (known) => this.#answer(() => this.#survey(new Set(known))),
      images: () => this.#answer(() => [...this.images.values()]),
      discs: () => this.#answer(() => []),
      guest: () => this.#answer(() => ({ agent: "Answered", cards: [card] })),
      changeOf: () => ({ class: "Live", detail: "The model takes everything." }),
      close: () => undefined,
    };
  }

  #preflight({ claim, disks }: Draft): Preflight {
    const volumesBefore = [...this.volumes.values()]
      .filter(({ owner }) => owner === claim.externalId)
      .map(({ id }) => id);
    const findings: Failure[] = [];
    if (this.isAway) findings.push(away);
    if (this.machines.has(claim.externalId)) {
      findings.push({ category: "IdentityConflict", message: `${claim.externalId} is taken.` });
    }
    if (volumesBefore.length > 0) {
      findings.push({
        category: "OrphanedVolumes",
        message: `There is ${volumesBefore.join()}.`,
      });
    }
    for (const { fill } of disks) {
      if (fill.from === "volume" && !this.images.has(fill.volume)) {
        findings.push({ category: "ImageNotFound", message: `There is no ${fill.volume}.` });
      }
    }
    return { findings, volumesBefore };
  }

  async #answer<T>(look: () => T): Promise<Answer<T>> {
    this.calls += 1;
    return this.isAway ? failed({ ...away, message: this.awayMessage }) : answered(look());
  }

  #inventory(): Inventory {
    const machines = [...this.machines.values()].map(({ id, node, power, version, lock }) => ({
      externalId: id,
      node,
      kind: "Machine" as const,
      power,
      hint: String(version),
      ...(lock === undefined ? {} : { lock: lock.kind }),
    }));
    const node = { health: "Healthy" as const, cpus: 8, memoryBytes: 64 * gib, memoryUsedBytes: 0 };
    const store = {
      name: "store",
      isShared: false,
      isUsable: true,
      contents: ["Disks" as const, "Images" as const],
      capacityBytes: 1000 * gib,
    };
    return {
      machines,
      nodes: ["n1", "n2"].map((name) => ({ ...node, name })),
      storages: ["n1", "n2"].map((name) => ({ ...store, node: name })),
      isComplete: true,
      missing: [],
    };
  }

  #observe(claim: ClaimedMachine): Seen {
    const machine = this.machines.get(claim.externalId);
    if (machine === undefined) return { at: "absent" };
    const { node, lock, mark, husk } = machine;
    if (husk === "ours" && lock !== undefined) return { at: "opaque", node, lock };
    if (husk !== undefined)
      return { at: "foreign", reason: "Husk", detail: "an empty reservation" };
    if (mark === undefined) return { at: "foreign", reason: "Stranger", detail: "it has no mark" };
    if (!agrees(mark, claim))
      return { at: "foreign", reason: "OtherOwner", detail: "another's mark" };
    if (mark.state === "Released") return { at: "foreign", reason: "Released", detail: "let go" };
    return { at: "ours", machine: this.#machine(machine) };
  }

  #machine(machine: ModelMachine): Machine {
    const { id, node, version, power, identity, mark, shape, disks, lock } = machine;
    return {
      externalId: id,
      node,
      version: String(version),
      power,
      isTemplate: false,
      identity,
      ...(mark === undefined ? {} : { mark }),
      shape,
      disks: disks.map((disk) => ({ ...disk, bus: "scsi" })),
      networks: [],
      ...(lock === undefined ? {} : { lock }),
      pending: [],
      volumes: disks.map(({ name, volume, storage, sizeBytes }) => ({
        id: volume,
        role: "Disk",
        storage,
        state: "Attached",
        isOwn: true,
        sizeBytes,
        ...(name === undefined ? {} : { disk: name }),
      })),
      hasSnapshots: false,
    };
  }

  #propose(avoid: ReadonlySet<string>): string {
    for (let id = this.#ids; ; id += 1) {
      if (!avoid.has(String(id)) && !this.machines.has(String(id))) return String(id);
    }
  }

  #survey(known: ReadonlySet<string>): Survey {
    const { nodes, storages } = this.#inventory();
    const placed = { storage: "store", node: "n1", isShared: false };
    const orphaned = [...this.volumes.values()].filter(({ owner }) => !this.machines.has(owner));
    return {
      machines: [...this.machines.values()].map((machine) => {
        const { id: externalId, node, power, identity, mark, husk, lock } = machine;
        const inside = husk === undefined ? "Machine" : "Husk";
        return {
          externalId,
          node,
          power,
          content: known.has(externalId) ? "Known" : inside,
          identity,
          ...(mark === undefined ? {} : { mark }),
          ...(lock === undefined ? {} : { lock: lock.detail }),
        };
      }),
      volumes: orphaned.map(({ id, owner, sizeBytes }) => {
        return { volume: id, externalId: owner, sizeBytes, ...placed };
      }),
      files: [],
      nodes: nodes.map(({ name }) => name),
      storages: storages.map(({ name, node }) => `${name} on ${node}`),
      missing: [],
    };
  }

  #leftovers(claim: ClaimedMachine): Leftover[] {
    const before = new Set(claim.preflightVolumes);
    const known = new Set(claim.volumes?.map(({ id }) => id));
    return [...this.volumes.values()]
      .filter(({ owner }) => owner === claim.externalId)
      .map(({ id, storage, sizeBytes }) => {
        const made = before.has(id) ? "Before" : "MadeUnderMark";
        const proof = known.has(id) ? "Claimed" : made;
        return { volume: id, storage, node: "n1", sizeBytes, proof };
      });
  }

  async #begin(operation: Operation, fence: Fence): Promise<Begun> {
    this.calls += 1;
    if (!fence.mayWrite()) return { outcome: "fenced" };
    const fault = this.fault(operation);
    if (this.isAway || fault === "lost before") return { outcome: "unknown", failure: away };
    const id = "claim" in operation ? operation.claim.externalId : "";
    this.effects.push(`${operation.kind} ${id}`);
    if (fault === "refused") {
      const failure = { category: "CreationFailed", message: "The model refuses." } as const;
      return { outcome: "refused", failure };
    }
    const begun = this.#do(operation, fault === "task fails");
    return fault === "lost after" ? { outcome: "unknown", failure: away } : begun;
  }

  #do(operation: Operation, isFailing: boolean): Begun {
    switch (operation.kind) {
      case "create":
        return this.#create(operation, isFailing);
      case "fetchImage": {
        const volume = `store:import/${operation.fileName}`;
        return this.#task("Other", "", () => {
          this.images.set(volume, { volume, fileName: operation.fileName, sizeBytes: gib });
        });
      }
      case "discardVolume":
      case "removeVolume":
        this.volumes.delete(operation.volume);
        return { outcome: "done" };
      case "addDisk":
      case "grow":
      case "configure":
      case "stamp":
      case "release":
      case "powerOn":
      case "powerOff":
      case "destroy":
        return this.#change(operation, isFailing);
      default: {
        const message = `The model has no ${operation.kind}.`;
        return { outcome: "refused", failure: { category: "APINotSupported", message } };
      }
    }
  }

  #create(operation: Operation & { kind: "create" }, isFailing: boolean): Begun {
    const { claim, node, shape } = operation;
    const { externalId: id, identity, installation, owner } = claim;
    if (this.machines.has(id)) return { outcome: "changed", detail: `${id} exists` };
    const lock: Lock = { kind: "Create", detail: "create", state: "Held" };
    const machine: ModelMachine = {
      id,
      node,
      identity,
      lock,
      husk: "ours",
      shape: {},
      disks: [],
      power: "Stopped",
      version: 1,
    };
    this.machines.set(id, machine);
    return this.#task("Create", id, () => {
      if (isFailing) {
        this.machines.delete(id);
        throw new Error("out of luck");
      }
      delete machine.lock;
      delete machine.husk;
      machine.shape = shape;
      const slots = slotsFrom(shape.disks ?? [], 0);
      machine.mark = {
        state: "Owned",
        installation,
        owner: { namespace: owner.namespace, name: owner.name },
        identity,
        externalId: id,
        disks: slots,
        networks: {},
      };
      machine.version += 1;
    });
  }

  #change(operation: Extract<Operation, { kind: ModelChange }>, isFailing: boolean): Begun {
    const { claim, at } = operation;
    const machine = this.machines.get(claim.externalId);
    const seen = this.#observe(claim);
    if (machine === undefined || seen.at !== "ours") return { outcome: "changed", detail: seen.at };
    if (String(machine.version) !== at.version) return { outcome: "changed", detail: "version" };
    if (machine.lock !== undefined) return { outcome: "blocked", waitsFor: machine.lock.detail };
    const fail = (): void => {
      if (isFailing) throw new Error("out of luck");
    };
    const now = changeNow(machine, operation);
    return now ? { outcome: "done" } : this.#changeLater(machine, operation, fail);
  }

  #changeLater(machine: ModelMachine, operation: Operation, fail: () => void): Begun {
    const { id } = machine;
    switch (operation.kind) {
      case "addDisk":
        machine.lock = { kind: "Other", detail: "config", state: "Held" };
        return this.#task("Configure", id, () => {
          delete machine.lock;
          fail();
          this.#attach(machine, operation);
        });
      case "grow":
        return this.#task("Grow", id, () => {
          fail();
          const disk = machine.disks.find(({ name }) => name === operation.disk);
          if (disk) disk.sizeBytes = operation.sizeBytes;
          machine.version += 1;
        });
      case "powerOn":
      case "powerOff": {
        const isOn = operation.kind === "powerOn";
        return this.#task(isOn ? "Start" : "Stop", id, () => {
          fail();
          machine.power = isOn ? "Running" : "Stopped";
        });
      }
      case "destroy": {
        const known = new Set(operation.volumes);
        if (machine.disks.some(({ volume }) => !known.has(volume))) {
          return { outcome: "changed", detail: "another volume" };
        }
        machine.lock = { kind: "Destroy", detail: "destroy", state: "Held" };
        return this.#task("Destroy", id, () => {
          delete machine.lock;
          fail();
          for (const { volume } of machine.disks) this.volumes.delete(volume);
          this.machines.delete(id);
        });
      }
      default:
        throw new Error(`${operation.kind} is done at once`);
    }
  }

  #attach(machine: ModelMachine, { disk, bootOrder }: Operation & { kind: "addDisk" }): void {
    const { id } = machine;
    const volume = `store:vm-${id}-disk-${machine.disks.length}`;
    const { name, storage, sizeBytes: wanted = gib, fill } = disk;
    const sizeBytes = fill.from === "blank" ? wanted : gib;
    this.volumes.set(volume, { id: volume, storage, owner: id, sizeBytes });
    const slot = machine.mark?.disks[name] ?? "d9";
    machine.disks.push({ name, slot, volume, storage, sizeBytes });
    if (bootOrder) machine.shape = { ...machine.shape, bootOrder };
    machine.version += 1;
  }

  #task(does: ModelTask["does"], id: string, effect: () => void): Begun {
    const handle = `task-${this.tasks.length + 1}`;
    const sinceMs = this.clock.nowMs();
    const task: ModelTask = { handle, does, id, sinceMs, view: { state: "running" } };
    this.tasks.push(task);
    this.clock.after(this.taskMs, () => {
      try {
        effect();
        task.view = { state: "succeeded" };
      } catch (error) {
        const failure = {
          category: "CreationFailed",
          message: `${does} failed.`,
          cause: String(error),
        } as const;
        task.view = { state: "failed", failure };
      }
    });
    return { outcome: "task", task: handle };
  }
}

function agrees({ installation, identity, owner }: Mark, claim: ClaimedMachine): boolean {
  const isOwner = owner.name === claim.owner.name && owner.namespace === claim.owner.namespace;
  return installation === claim.installation && identity === claim.identity && isOwner;
}

function slotsFrom(disks: readonly { name: string }[], first: number): Record<string, string> {
  const slots: Record<string, string> = {};
  for (const [i, { name }] of disks.entries()) slots[name] = `d${first + i}`;
  return slots;
}

/** Makes a change that takes no time; false where it does. */
function changeNow(machine: ModelMachine, operation: Operation): boolean {
  const { mark, shape, disks } = machine;
  if (operation.kind === "configure") machine.shape = { ...shape, ...operation.shape };
  else if (operation.kind === "release" && mark) machine.mark = releasedMark(mark);
  else if (operation.kind === "stamp" && mark) {
    const slots = slotsFrom(operation.disks, disks.length);
    const cards = slotsFrom(operation.networks, Object.keys(mark.networks).length);
    machine.mark = {
      ...mark,
      disks: { ...mark.disks, ...slots },
      networks: { ...mark.networks, ...cards },
    };
  } else return false;
  machine.version += 1;
  return true;
}
