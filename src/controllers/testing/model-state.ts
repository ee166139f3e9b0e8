import type {
  Begun,
  ImageFile,
  Lock,
  Mark,
  Power,
  Shape,
  TaskView,
} from "../../hypervisor/index.ts";

/** What stands on a model hypervisor. */
export interface ModelState {
  readonly machines: Map<string, ModelMachine>;
  readonly volumes: Map<string, ModelVolume>;
  readonly images: Map<string, ImageFile>;
}

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

export interface ModelVolume {
  readonly id: string;
  readonly storage: string;
  readonly owner: string;
  sizeBytes: number;
}

export interface ModelTask {
  readonly handle: string;
  readonly does: "Create" | "Configure" | "Grow" | "Start" | "Stop" | "Destroy" | "Other";
  readonly id: string;
  readonly sinceMs: number;
  view: TaskView;
}

/** Begins a task whose effect comes with its end; one that throws lets the task fail. */
export type BeginTask = (does: ModelTask["does"], id: string, effect: () => void) => Begun;

export const gib = 1024 ** 3;
