import { answered, failed } from "../../hypervisor/index.ts";
import type {
  Advanced,
  Answer,
  Begun,
  Capability,
  EpochChange,
  EpochView,
  Failure,
  Fence,
  HypervisorDriver,
  Operation,
  RecallTarget,
} from "../../hypervisor/index.ts";
import type { VirtualClock } from "../../kernel/virtual-clock.ts";
import { isRunning, seenOf } from "./model-identity.ts";
import { beginOn } from "./model-operations.ts";
import { preflightOf } from "./model-preflight.ts";
import { fitShape } from "./model-shape.ts";
import {
  gib,
  type ModelFile,
  type ModelMachine,
  type ModelState,
  type ModelStorage,
  type ModelTask,
  type ModelTools,
  type ModelVolume,
  type ModelWork,
  nodeNames,
} from "./model-state.ts";
import { changeOf, filesAt, guestOf, inventoryOf, leftoversOf, surveyOf } from "./model-views.ts";

/** What happens to one call. Lost: the reply never comes; `before`, and nothing was done. */
export type CallFault = "none" | "lost before" | "lost after" | "refused" | "task fails";

const away: Failure = { category: "NetworkError", message: "The model does not answer." };

const lost: Failure = { category: "UnknownOutcome", message: "The model's reply was lost." };

const capabilities: readonly Capability[] = [
  "CreateBlank",
  "ImportFromImage",
  "FullClone",
  "LinkedClone",
  "FetchImage",
  "GrowDisk",
  "CloudInit",
  "LiveMigration",
  "MoveDisk",
  "TransferDisk",
  "Firmware",
  "SeedDisc",
  "Suspend",
  "Devices",
  "HighAvailability",
  "Unlock",
];

/**
 * A hypervisor in memory, with tasks that take time, locks, lost replies and strangers. Its driver
 * passes the conformance suite, so what is tested on it is tested on a hypervisor of the contract.
 */
export class ModelHypervisor implements ModelState {
  readonly clock: VirtualClock;
  readonly systemId: string;
  readonly machines = new Map<string, ModelMachine>();
  readonly volumes = new Map<string, ModelVolume>();
  readonly images = new Map<string, ModelFile>();
  readonly discs = new Map<string, ModelFile>();
  readonly storages: ModelStorage[] = [
    { name: "store", contents: ["Disks", "Images", "ISOs"], capacityBytes: 1000 * gib },
  ];
  readonly epochs = new Map<string, EpochView>();
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
  /** Asked at every `advance`. */
  epochFault: () => CallFault = () => "none";
  #ids = 100;

  constructor(clock: VirtualClock, systemId = "model-1") {
    this.clock = clock;
    this.systemId = systemId;
    const volume = "store:import/debian.qcow2";
    const nodes = new Set(nodeNames);
    this.images.set(volume, { volume, fileName: "debian.qcow2", sizeBytes: 2 * gib, nodes });
  }

  nowMs(): number {
    return this.clock.nowMs();
  }

  later(ms: number, then: () => void): void {
    this.clock.after(ms, then);
  }

  /** A VM that must be there. */
  machine(id: string): ModelMachine {
    const machine = this.machines.get(id);
    if (machine === undefined) throw new Error(`there is no VM ${id}`);
    return machine;
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
      disks: [{ slot: "scsi-0", volume, options: {} }],
      cards: [],
      drives: [],
      pci: [],
      usb: [],
      boot: ["scsi-0"],
      others: [],
      power: "Running",
      version: 1,
    };
    this.machines.set(id, machine);
    return machine;
  }

  /** Ends the worker of a task in the middle of its work, without a word. */
  kill(handle: string): void {
    this.tasks.find((task) => task.handle === handle)?.stop();
  }

  driver(): HypervisorDriver {
    return {
      system: () =>
        this.#answer(() => {
          return { systemId: this.systemId, version: "1.0", capabilities, findings: [] };
        }),
      inventory: () => this.#answer(() => inventoryOf(this)),
      observe: async (claim, hints) => {
        const seen = await this.#answer(() => seenOf(this, claim, hints));
        return seen.ok ? seen.value : { at: "unknown", failure: seen.failure };
      },
      propose: (avoid) => this.#answer(() => this.#propose(new Set(avoid))),
      fit: fitShape,
      preflight: async (draft) => {
        return this.isAway ? { findings: [away], otherVolumes: [] } : preflightOf(this, draft);
      },
      begin: (operation, fence) => this.#begin(operation, fence),
      look: async (handle) => {
        const answer = await this.#answer(
          () => this.tasks.find((task) => task.handle === handle)?.view,
        );
        if (!answer.ok) return { state: "unknown", failure: answer.failure };
        return answer.value ?? { state: "lost", cause: "no such task" };
      },
      recall: (target, sinceMs) =>
        this.#answer(() =>
          this.tasks
            .filter((task) => task.id === recalledId(target) && !this.isForgetful)
            .filter((task) => isRunning(task) || task.sinceMs >= sinceMs)
            .toReversed()
            .map((task) => {
              const { handle, does, sinceMs: at } = task;
              return { task: handle, does, sinceMs: at, isRunning: isRunning(task) };
            }),
        ),
      leftovers: (claim) => this.#answer(() => leftoversOf(this, claim)),
      survey: (known) => this.#answer(() => surveyOf(this, new Set(known))),
      images: (place) => this.#answer(() => filesAt(this.images, place)),
      discs: (place) => this.#answer(() => filesAt(this.discs, place)),
      guest: (claim) => this.#answer(() => guestOf(this, claim)),
      changeOf,
      epoch: (installation) => this.#answer(() => this.epochs.get(installation)),
      advance: (change, fence) => this.#advance(change, fence),
      close: () => undefined,
    };
  }

  async #advance(change: EpochChange, fence: Fence): Promise<Advanced> {
    this.calls += 1;
    if (!fence.mayWrite()) return { outcome: "fenced" };
    const fault = this.epochFault();
    if (this.isAway || fault === "lost before") return { outcome: "unknown", failure: away };
    if (fault === "refused") {
      const failure = { category: "PermissionDenied", message: "The model refuses." } as const;
      return { outcome: "refused", failure };
    }
    const advanced = this.#swap(change);
    return fault === "lost after" ? { outcome: "unknown", failure: away } : advanced;
  }

  #swap({ installation, from, to }: EpochChange): Advanced {
    const seen = this.epochs.get(installation);
    const isWritten = seen?.number === to.number && seen.run === to.run;
    if (!isWritten && seen?.number !== from) {
      return {
        outcome: "changed",
        detail: "another epoch",
        ...(seen === undefined ? {} : { seen }),
      };
    }
    this.epochs.set(installation, to);
    return { outcome: "done" };
  }

  /** What is answered is a copy: nothing that happens later changes what was seen. */
  async #answer<T>(look: () => T): Promise<Answer<T>> {
    this.calls += 1;
    if (this.isAway) return failed({ ...away, message: this.awayMessage });
    return answered(structuredClone(look()));
  }

  #propose(avoid: ReadonlySet<string>): string {
    for (let id = this.#ids; ; id += 1) {
      if (!avoid.has(String(id)) && !this.machines.has(String(id))) return String(id);
    }
  }

  async #begin(operation: Operation, fence: Fence): Promise<Begun> {
    this.calls += 1;
    if (!fence.mayWrite()) return { outcome: "fenced" };
    if (this.isAway) return { outcome: "refused", failure: away };
    const fault = this.fault(operation);
    if (fault === "lost before") return { outcome: "unknown", failure: lost };
    const id = "claim" in operation ? operation.claim.externalId : "";
    this.effects.push(`${operation.kind} ${id}`);
    if (fault === "refused") {
      const failure = { category: "CreationFailed", message: "The model refuses." } as const;
      return { outcome: "refused", failure };
    }
    const task: ModelTools["task"] = (work) => this.#task(work, fault === "task fails");
    const begun = await beginOn({ state: this, task }, operation);
    return fault === "lost after" ? { outcome: "unknown", failure: lost } : begun;
  }

  #task(work: ModelWork, isFailing: boolean): Begun & { readonly outcome: "task" } {
    const { does, id, from } = work;
    const handle = `task-${this.tasks.length + 1}`;
    const end = this.clock.after(this.taskMs, () => {
      task.view = endOf(work, isFailing);
    });
    const task: ModelTask = {
      handle,
      does,
      id,
      ...(from === undefined ? {} : { from }),
      sinceMs: this.clock.nowMs(),
      view: { state: "running" },
      stop: () => {
        end();
        work.onKilled?.();
        task.view = { state: "lost", cause: "its worker died" };
      },
    };
    this.tasks.push(task);
    return { outcome: "task", task: handle };
  }
}

/** Work on a file is known by the file's name. */
function recalledId(target: RecallTarget): string {
  return "externalId" in target ? target.externalId : target.fileName;
}

/** Does what a task was begun for. */
function endOf(work: ModelWork, isFailing: boolean): ModelTask["view"] {
  try {
    if (isFailing) throw new Error("out of luck");
    work.effect();
    return { state: "succeeded" };
  } catch (error) {
    work.onFailed?.();
    const message = `${work.does} failed.`;
    const failure = { category: "CreationFailed", message, cause: String(error) } as const;
    return { state: "failed", failure };
  }
}
