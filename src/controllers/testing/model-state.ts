import type {
  Begun,
  EpochView,
  CdromShape,
  DiskShape,
  Failure,
  HighAvailabilityShape,
  ImageFile,
  Lock,
  Mark,
  NetworkShape,
  PciShape,
  Power,
  SeenVolume,
  Shape,
  StorageContent,
  TaskView,
  UsbShape,
  Work,
} from "../../hypervisor/index.ts";

/** What exists on a model hypervisor. */
export interface ModelState {
  readonly machines: Map<string, ModelMachine>;
  /** Disks and the small volumes of VMs, by their ids. */
  readonly volumes: Map<string, ModelVolume>;
  /** Files to fill disks from, by their ids. */
  readonly images: Map<string, ModelFile>;
  /** Files to put into drives, by their ids. */
  readonly discs: Map<string, ModelFile>;
  /** Every node has a storage of its own under each of these names. */
  readonly storages: ModelStorage[];
  readonly tasks: ModelTask[];
  /** By installation. */
  readonly epochs: Map<string, EpochView>;
  nowMs(): number;
  /** Runs something later, whatever becomes of the task that asked for it. */
  later(ms: number, then: () => void): void;
}

export interface ModelStorage {
  readonly name: string;
  readonly contents: readonly StorageContent[];
  readonly capacityBytes: number;
}

/** Parts are known by their slots alone; their names are in the mark. */
export interface ModelMachine {
  readonly id: string;
  node: string;
  identity: string;
  mark?: Mark;
  /** What was said of the VM as a whole. Its parts are below, and never in here. */
  shape: Shape;
  disks: ModelDisk[];
  cards: ModelPart<NetworkShape>[];
  drives: ModelPart<CdromShape>[];
  pci: ModelPart<PciShape>[];
  usb: ModelPart<UsbShape>[];
  /** The slots in the order in which the firmware tries them. */
  boot: string[];
  /** Volumes that the VM refers to and that are no attached disk. */
  others: ModelReference[];
  power: Power;
  version: number;
  lock?: Lock;
  /** Reserved and empty, by whom. */
  husk?: "ours" | "stranger";
  isTemplate?: boolean;
  /** The task of ours that copied it from another VM. */
  clonedBy?: string;
  /** Of a VM that runs: since when, and with which values of those that wait for a start. */
  started?: { readonly sinceMs: number; readonly shape: Shape };
  guarded?: HighAvailabilityShape & { readonly requested: "Running" | "Stopped" };
  pool?: string;
}

export interface ModelDisk {
  readonly slot: string;
  readonly volume: string;
  options: Omit<DiskShape, "name" | "bus">;
}

export interface ModelPart<Part> {
  readonly slot: string;
  options: Omit<Part, "name">;
}

export interface ModelReference {
  readonly volume: string;
  readonly role: SeenVolume["role"];
}

export interface ModelVolume {
  readonly id: string;
  readonly storage: string;
  /** The VM whose id it bears. */
  readonly owner: string;
  sizeBytes: number;
  node?: string;
  /** A task of the model made it, and its log names it. */
  isLogged?: boolean;
}

/** A file, on the storages of these nodes. */
export interface ModelFile extends ImageFile {
  readonly nodes: Set<string>;
}

export interface ModelTask {
  readonly handle: string;
  readonly does: Work;
  readonly id: string;
  /** Of a clone: the VM that is copied. */
  readonly from?: string;
  readonly sinceMs: number;
  view: TaskView;
  /** Stops the work where it is. */
  stop(): void;
}

/** Work that goes on after `begin` has answered. Its effect comes with its end. */
export interface ModelWork {
  readonly does: Work;
  readonly id: string;
  readonly from?: string;
  /** One that throws lets the task fail. */
  effect(): void;
  /** What a worker clears away that has failed. */
  onFailed?(): void;
  /** What the death of its worker does; without it everything stays as it is. */
  onKilled?(): void;
}

/** What an operation has to do its work with. */
export interface ModelTools {
  readonly state: ModelState;
  task(work: ModelWork): Begun & { readonly outcome: "task" };
}

export const gib = 1024 ** 3;

export const nodeNames = ["n1", "n2"];

/** The networks that a card can be on. */
export const networkNames = ["vmbr0", "vmbr1"];

export const done: Begun = { outcome: "done" };

export function refused(category: Failure["category"], message: string): Begun {
  return { outcome: "refused", failure: { category, message } };
}

/** Another volume or file has the name by now. */
export function replaced(volume: string): Begun {
  return changed(`${volume} is not the one that was decided about`);
}

export function changed(detail: string): Begun {
  return { outcome: "changed", detail };
}

/** Every volume and file that a VM refers to. */
export function referencesOf(machine: ModelMachine): Set<string> {
  const { disks, others, drives, shape } = machine;
  const seed = shape.cloudInit?.seed;
  return new Set([
    ...disks.map(({ volume }) => volume),
    ...others.map(({ volume }) => volume),
    ...drives.map(({ options }) => options.medium ?? ""),
    ...(seed?.state === "Inserted" ? [discVolume(seed.storage, seed.fileName)] : []),
  ]);
}

/** The VM that refers to a volume or a file. */
export function userOf({ machines }: ModelState, volume: string): ModelMachine | undefined {
  return [...machines.values()].find((machine) => referencesOf(machine).has(volume));
}

export function discVolume(storage: string, fileName: string): string {
  return `${storage}:iso/${fileName}`;
}

/** A new volume under the id of a VM, which nothing refers to yet. */
export function allocate(
  state: ModelState,
  { id: owner, node }: ModelMachine,
  { storage, sizeBytes }: { readonly storage: string; readonly sizeBytes: number },
): ModelVolume {
  for (let number = 0; ; number += 1) {
    const id = `${storage}:vm-${owner}-disk-${number}`;
    if (state.volumes.has(id)) continue;
    const volume = { id, storage, owner, node, sizeBytes, isLogged: true };
    state.volumes.set(id, volume);
    return volume;
  }
}

export function freeBytes({ storages, volumes }: ModelState, name: string): number | undefined {
  const storage = storages.find((candidate) => candidate.name === name);
  if (storage === undefined) return undefined;
  const here = [...volumes.values()].filter((volume) => volume.storage === name);
  return here.reduce((left, { sizeBytes }) => left - sizeBytes, storage.capacityBytes);
}
