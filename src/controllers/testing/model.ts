import { answered, failed } from "../../hypervisor/index.ts";
import type {
  Answer,
  Begun,
  Failure,
  Fence,
  HypervisorDriver,
  ImageFile,
  Operation,
} from "../../hypervisor/index.ts";
import type { VirtualClock } from "../../kernel/virtual-clock.ts";
import { ModelOperations } from "./model-operations.ts";
import {
  gib,
  type ModelMachine,
  type ModelState,
  type ModelTask,
  type ModelVolume,
} from "./model-state.ts";
import { inventoryOf, leftoversOf, preflightOf, seenOf, surveyOf } from "./model-views.ts";

/** What happens to one call. Lost: the reply never comes; `before`, and nothing was done. */
export type CallFault = "none" | "lost before" | "lost after" | "refused" | "task fails";

const away: Failure = { category: "NetworkError", message: "The model does not answer." };

const card = {
  network: "lan",
  device: "eth0",
  addresses: [{ address: "10.0.0.5", prefix: 24 }],
};

/** A hypervisor in memory, with tasks that take time, locks, lost replies and strangers. */
export class ModelHypervisor implements ModelState {
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
  readonly #operations = new ModelOperations(this, (does, id, effect) => {
    return this.#task(does, id, effect);
  });
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
      inventory: () => this.#answer(() => inventoryOf(this)),
      observe: async (claim) => {
        const seen = await this.#answer(() => seenOf(this, claim));
        return seen.ok ? seen.value : { at: "unknown", failure: seen.failure };
      },
      propose: (avoid) => this.#answer(() => this.#propose(new Set(avoid))),
      fit: (shape) => ({ shape, refusals: [] }),
      preflight: async (draft) => {
        const { findings, volumesBefore } = preflightOf(this, draft);
        return { findings: this.isAway ? [away, ...findings] : findings, volumesBefore };
      },
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
      leftovers: (claim) => this.#answer(() => leftoversOf(this, claim)),
      survey: (known) => this.#answer(() => surveyOf(this, new Set(known))),
      images: () => this.#answer(() => [...this.images.values()]),
      discs: () => this.#answer(() => []),
      guest: () => this.#answer(() => ({ agent: "Answered", cards: [card] })),
      changeOf: () => ({ class: "Live", detail: "The model takes everything." }),
      close: () => undefined,
    };
  }

  async #answer<T>(look: () => T): Promise<Answer<T>> {
    this.calls += 1;
    return this.isAway ? failed({ ...away, message: this.awayMessage }) : answered(look());
  }

  #propose(avoid: ReadonlySet<string>): string {
    for (let id = this.#ids; ; id += 1) {
      if (!avoid.has(String(id)) && !this.machines.has(String(id))) return String(id);
    }
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
    const begun = this.#operations.begin(operation, fault === "task fails");
    return fault === "lost after" ? { outcome: "unknown", failure: away } : begun;
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
