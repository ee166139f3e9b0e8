import type { Hypervisor, VirtualMachine, VMImage } from "../api/index.ts";
import type { Informer } from "../client/index.ts";
import { NetworkError } from "../client/index.ts";
import type { Inventory, InventoryMachine } from "../hypervisor/index.ts";
import { objectKey, type KubeObject } from "../kernel/object.ts";
import { ApiError } from "../kernel/status.ts";
import {
  createEventRecorder,
  ownObjects,
  relatedObjects,
  startController,
  type Controller,
  type ControllerOptions,
  type EventRecorder,
  type RetryPolicy,
  type Slots,
} from "../runtime/index.ts";
import { Ledger, reconcileClaim, WrittenObjects } from "./claims/index.ts";
import { Connections, reconcileHypervisor, type Session } from "./hypervisor/index.ts";
import type { Informers } from "./informers.ts";
import type { Meters } from "./meters.ts";
import type { ControllersOptions } from "./options.ts";
import { Sweeps } from "./orphan/index.ts";
import { onlyComplete, orphanWork } from "./orphan-work.ts";
import { createMakingTime, createReports, type Reports } from "./reports/index.ts";
import {
  forgetVolume,
  Places,
  reconcileVm,
  TaskPace,
  type VmMemory,
} from "./virtual-machine/index.ts";
import { imagesWanted, reconcileImage, wishesFor, type ImageMemory } from "./vm-image/index.ts";

/** What all controllers of one term stand on. */
export interface Ground {
  readonly options: ControllersOptions;
  readonly informers: Informers;
  readonly slots: Slots;
  readonly installation: string;
  readonly identity: string;
  readonly mayWrite: () => boolean;
  /** How long what an earlier leader sent may still take effect. */
  readonly writableInMs: () => number;
  readonly meters: Meters;
}

const concurrencyDefault = 32;
/** What a tick does not show, as a changed note or cable, is seen at the latest then. */
const vmResyncMs = 60 * 60_000;
/** Of machines that waited for the same hypervisor, so many are woken in so long. */
const wakesPerPace = 20;
const paceMs = 200;
/** The API server is away: it comes back, and until then nothing else can be done. */
const apiAwayPolicy: RetryPolicy = {
  delaysMs: [500, 1_000, 2_000, 5_000, 10_000],
  jitter: 0.2,
  attemptsMax: Infinity,
};

/** The controllers of one term of leadership, and what they share. */
export class Reign {
  readonly #ground: Ground;
  readonly #connections = new Connections();
  readonly #ledger: Ledger;
  readonly #events: EventRecorder;
  readonly #hypervisors: WrittenObjects<Hypervisor>;
  readonly #vms: WrittenObjects<VirtualMachine>;
  readonly #images: WrittenObjects<VMImage>;
  readonly #sessions = new Map<string, Session>();
  readonly #vmMemory = new Map<string, VmMemory>();
  readonly #imageMemory = new Map<string, ImageMemory>();
  readonly #sweeps = new Sweeps();
  readonly #controllers: Record<
    "claim" | "hypervisor" | "image" | "vm" | "sweep" | "orphan",
    Controller
  >;
  readonly #reports: Reports;
  readonly #unlisten: () => void;
  readonly #unfollow: () => void;

  constructor(ground: Ground) {
    this.#ground = ground;
    const { options, informers, installation, identity: instance } = ground;
    const { client, clock, random } = options;
    this.#ledger = new Ledger({ client, claims: informers.claims, clock, installation });
    this.#hypervisors = new WrittenObjects(informers.hypervisors);
    this.#vms = new WrittenObjects(informers.vms);
    this.#images = new WrittenObjects(informers.images);
    this.#ledger.systemOf = (name) => this.#hypervisors.get(name)?.spec.systemId;
    const component = "berth.dev/controllers";
    this.#events = createEventRecorder({ client, clock, random, component, instance });
    const { log } = options;
    const { operations: metrics, places } = ground.meters;
    this.#reports = createReports({ clock, events: this.#events, log, metrics });
    const { hypervisors } = informers;
    this.#unfollow = places.follow({
      hypervisors,
      inventoryOf: (name) => this.#inventoryOf(name),
      slots: () => ground.slots.view(),
    });
    this.#controllers = {
      claim: this.#startClaims(),
      hypervisor: this.#startHypervisors(),
      image: this.#startImages(),
      vm: this.#startVms(),
      ...this.#startOrphans(),
    };
    this.#sweeps.wake = (name) => this.#controllers.sweep.wake(name);
    this.#unlisten = this.#connections.on({
      changed: (name) => this.#hypervisorChanged(name),
      improved: (name) => this.#retryFailed(name),
      trusted: (name) => this.#wakeHeld(name),
      rows: (name, externalIds) => this.#rowsChanged(name, new Set(externalIds)),
      looked: (name, inventory) => this.#compare(name, inventory),
    });
  }

  /** Starts nothing more, and resolves when what runs has ended. */
  async stop(): Promise<void> {
    this.#unlisten();
    this.#unfollow();
    await Promise.all(Object.values(this.#controllers).map((controller) => controller.stop()));
    await this.#events.stop();
    for (const { driver } of this.#sessions.values()) driver.close();
  }

  #start(
    options: Pick<
      ControllerOptions,
      "name" | "sources" | "reconcile" | "concurrency" | "resyncMs" | "spent"
    >,
  ): Controller {
    const { clock, random, log, outside } = this.#ground.options;
    const onError = (error: unknown, key: string): void => {
      log("warn", "a run failed", { controller: options.name, key, error: String(error) });
    };
    const metrics = this.#ground.meters.controllerOf(options.name);
    const timed = outside === undefined ? {} : { outside };
    return startController({ ...options, ...timed, clock, random, classify, onError, metrics });
  }

  #inventoryOf(hypervisor: string): Inventory | undefined {
    const reach = this.#connections.of(hypervisor);
    return reach.is === "ready" ? reach.connection.inventory : undefined;
  }

  #startClaims(): Controller {
    const { options, informers } = this.#ground;
    const { claims } = informers;
    const deps = { claims, ledger: this.#ledger, clock: options.clock };
    const reconcile = (key: string): ReturnType<typeof reconcileClaim> => reconcileClaim(key, deps);
    return this.#start({ name: "claim", sources: [ownObjects(claims)], reconcile });
  }

  #startHypervisors(): Controller {
    const { options, informers } = this.#ground;
    const { hypervisors, vms, claims } = informers;
    const { client, clock, random, connect, tickMs } = options;
    const deps = {
      client,
      clock,
      random,
      connect,
      tickMs,
      hypervisors,
      vms,
      connections: this.#connections,
      ledger: this.#ledger,
      objects: this.#hypervisors,
      sessions: this.#sessions,
      sweepTroubleOf: (name: string) => this.#sweeps.troubleOf(name),
      reports: this.#reports,
      lookNow: (name: string) => this.#controllers.hypervisor.wake(name),
    };
    return this.#start({
      name: "hypervisor",
      sources: [ownObjects(hypervisors), onlyComplete(vms), onlyComplete(claims)],
      reconcile: (key) => reconcileHypervisor(key, deps),
    });
  }

  #startImages(): Controller {
    const { options, informers, mayWrite } = this.#ground;
    const { images, vms, hypervisors } = informers;
    const { client, clock, random } = options;
    const deps = {
      client,
      clock,
      random,
      vms,
      hypervisors,
      fence: { mayWrite },
      connections: this.#connections,
      images: this.#images,
      allImages: images,
      web: options.web,
      memory: this.#imageMemory,
      reports: this.#reports,
    };
    return this.#start({
      name: "image",
      sources: [
        ownObjects(images),
        relatedObjects(vms, imagesWanted, wishesFor),
        onlyComplete(hypervisors),
      ],
      reconcile: (key) => reconcileImage(key, deps),
    });
  }

  #startVms(): Controller {
    const { options, informers, slots, mayWrite, writableInMs } = this.#ground;
    const { vms, hypervisors, classes, images, networks, claims } = informers;
    const { client, clock, random } = options;
    const deps = {
      client,
      clock,
      random,
      slots,
      pace: new TaskPace(),
      places: new Places(),
      fence: { mayWrite },
      writableInMs,
      vms: this.#vms,
      lookups: { vms, hypervisors, classes, images, networks },
      connections: this.#connections,
      ledger: this.#ledger,
      events: this.#events,
      reports: this.#reports,
      memory: this.#vmMemory,
      mayDestroy: options.mayDestroy ?? (() => Promise.resolve(true)),
      // Whoever was given slots holds up all who wait for them.
      wake: (key: string) => this.#controllers.vm.enqueue(key, { priority: "step" }),
    };
    const making = createMakingTime(clock.nowMs(), this.#ground.meters.made);
    const users = (index: string) => {
      return ({ metadata }: KubeObject): string[] => keysOf(vms, index, objectKey(metadata));
    };
    return this.#start({
      name: "vm",
      concurrency: options.concurrency ?? concurrencyDefault,
      resyncMs: vmResyncMs,
      sources: [
        ownObjects(vms),
        onlyComplete(claims),
        onlyComplete(hypervisors),
        relatedObjects(classes, users("class")),
        relatedObjects(images, users("image")),
        relatedObjects(networks, users("network")),
        // Copies that wait until their original stands.
        relatedObjects(vms, users("source"), standing),
      ],
      reconcile: (key) => reconcileVm(key, deps),
      spent: (key, ownMs) => making.spent(key, ownMs, this.#vms.get(key)),
    });
  }

  /** What looks for things that nothing declares, and what does what is decided about them. */
  #startOrphans(): Record<"sweep" | "orphan", Controller> {
    const work = orphanWork(this.#ground, {
      connections: this.#connections,
      ledger: this.#ledger,
      events: this.#events,
      sweeps: this.#sweeps,
      slots: this.#ground.slots,
      wakeOrphan: (name) => this.#controllers.orphan.wake(name),
      destroyed: (name, externalId) => {
        for (const key of keysOf(this.#ground.informers.vms, "hypervisor", name)) {
          forgetVolume(this.#vmMemory.get(key), externalId);
        }
        this.#retryFailed(name);
      },
    });
    return { sweep: this.#start(work.sweep), orphan: this.#start(work.orphan) };
  }

  #hypervisorChanged(name: string): void {
    const { informers, slots } = this.#ground;
    slots.refresh();
    this.#controllers.sweep.wake(name);
    this.#wakePaced(keysOf(informers.vms, "hypervisor", name));
    this.#wakeImages();
  }

  #wakeImages(): void {
    for (const { metadata } of this.#ground.informers.images.list()) {
      this.#controllers.image.wake(objectKey(metadata));
    }
  }

  #retryFailed(name: string): void {
    const vms = this.#ground.informers.vms.byIndex("hypervisor", name);
    const failed = vms.filter(({ status }) => status?.failure !== undefined);
    this.#wakePaced(failed.map(({ metadata }) => objectKey(metadata)));
    // A node or a storage that came back may have files.
    this.#wakeImages();
  }

  #wakeHeld(name: string): void {
    const keys = keysOf(this.#ground.informers.vms, "hypervisor", name);
    this.#wakePaced(keys.filter((key) => this.#vmMemory.get(key)?.isHeld === true));
    this.#wakeImages();
  }

  /** Whatever they waited for: a thousand at once would be the next outage. */
  #wakePaced(keys: readonly string[]): void {
    for (const [index, key] of keys.entries()) {
      const memory = this.#vmMemory.get(key);
      // Also one that stands in line for slots looks.
      if (memory !== undefined) delete memory.retry;
      if (memory !== undefined) delete memory.line;
      const delayMs = Math.floor(index / wakesPerPace) * paceMs;
      this.#controllers.vm.enqueue(key, { delayMs });
    }
  }

  /**
   * What came and went between two ticks left no trace in the rows. So they are held against what
   * was last seen of each machine, and not only against the rows before.
   */
  #compare(name: string, { machines }: Inventory): void {
    const rows = new Map(machines.map((row) => [row.externalId, row]));
    for (const { metadata, status } of this.#ground.informers.vms.byIndex("hypervisor", name)) {
      const isAtRest = status?.disks !== undefined && !status.operation && !status.failure;
      const isSame = isAtRest && looksAs(status, rows.get(status.externalId ?? ""));
      if (isAtRest && !isSame) this.#controllers.vm.wake(objectKey(metadata));
    }
  }

  #rowsChanged(name: string, externalIds: ReadonlySet<string>): void {
    for (const { metadata, status } of this.#ground.informers.vms.byIndex("hypervisor", name)) {
      const isChanged = status?.externalId !== undefined && externalIds.has(status.externalId);
      if (isChanged) this.#lookNow(objectKey(metadata));
    }
  }

  /** Something is not as it was: also one that stands in line for slots looks. */
  #lookNow(key: string): void {
    const memory = this.#vmMemory.get(key);
    if (memory !== undefined) delete memory.line;
    this.#controllers.vm.wake(key);
  }
}

/** Whether a row tells of a machine what was last seen of it. */
function looksAs(
  { powerState }: NonNullable<VirtualMachine["status"]>,
  row: InventoryMachine | undefined,
): boolean {
  return row?.power === "Unknown" || row?.power === powerState;
}

/** What copies of a machine wait for. */
function standing({ status }: VirtualMachine): unknown {
  const { hypervisor, externalId, conditions = [] } = status ?? {};
  return [hypervisor, externalId, conditions.find(({ type }) => type === "Provisioned")?.status];
}

function keysOf(vms: Informer<VirtualMachine>, index: string, value: string): string[] {
  return vms.byIndex(index, value).map(({ metadata }) => objectKey(metadata));
}

function classify(error: unknown): ReturnType<NonNullable<ControllerOptions["classify"]>> {
  if (!isAway(error)) return undefined;
  return { category: "ApiUnreachable", policy: apiAwayPolicy };
}

/** No answer, or that it takes nothing now: unavailable, or its disk is full. */
function isAway(error: unknown): boolean {
  if (error instanceof NetworkError) return true;
  return error instanceof ApiError && (error.code === 503 || error.code === 507);
}
