import { releasedMark } from "../../hypervisor/index.ts";
import type { Begun, Lock, Operation } from "../../hypervisor/index.ts";
import { type BeginTask, gib, type ModelMachine, type ModelState } from "./model-state.ts";
import { seenOf } from "./model-views.ts";

type ModelChange =
  | "addDisk"
  | "grow"
  | "configure"
  | "stamp"
  | "release"
  | "powerOn"
  | "powerOff"
  | "destroy";

/** What a model does of what it is asked, at once or as a task. */
export class ModelOperations {
  readonly #state: ModelState;
  readonly #task: BeginTask;

  constructor(state: ModelState, beginTask: BeginTask) {
    this.#state = state;
    this.#task = beginTask;
  }

  begin(operation: Operation, isFailing: boolean): Begun {
    switch (operation.kind) {
      case "create":
        return this.#create(operation, isFailing);
      case "fetchImage": {
        const volume = `store:import/${operation.fileName}`;
        return this.#task("Other", "", () => {
          this.#state.images.set(volume, { volume, fileName: operation.fileName, sizeBytes: gib });
        });
      }
      case "discardVolume":
      case "removeVolume":
        this.#state.volumes.delete(operation.volume);
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
    if (this.#state.machines.has(id)) return { outcome: "changed", detail: `${id} exists` };
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
    this.#state.machines.set(id, machine);
    return this.#task("Create", id, () => {
      if (isFailing) {
        this.#state.machines.delete(id);
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
    const machine = this.#state.machines.get(claim.externalId);
    const seen = seenOf(this.#state, claim);
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
          for (const { volume } of machine.disks) this.#state.volumes.delete(volume);
          this.#state.machines.delete(id);
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
    this.#state.volumes.set(volume, { id: volume, storage, owner: id, sizeBytes });
    const slot = machine.mark?.disks[name] ?? "d9";
    machine.disks.push({ name, slot, volume, storage, sizeBytes });
    if (bootOrder) machine.shape = { ...machine.shape, bootOrder };
    machine.version += 1;
  }
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

function slotsFrom(disks: readonly { name: string }[], first: number): Record<string, string> {
  const slots: Record<string, string> = {};
  for (const [i, { name }] of disks.entries()) slots[name] = `d${first + i}`;
  return slots;
}
