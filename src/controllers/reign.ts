import type { Hypervisor, VirtualMachine } from "../api/index.ts";
import type { Inventory } from "../hypervisor/index.ts";
import { objectKey, type KubeObject } from "../kernel/object.ts";
import {
  createEventRecorder,
  ownObjects,
  relatedObjects,
  startController,
  type Controller,
  type ControllerOptions,
  type EventRecorder,
} from "../runtime/index.ts";
import { classify } from "./api-away.ts";
import { Amnesia, type Remembered } from "./amnesia.ts";
import { FileLedger, Ledger, reconcileClaim } from "./claims/index.ts";
import {
  Connections,
  reconcileHypervisor,
  type HypervisorDeps,
  type Session,
} from "./hypervisor/index.ts";
import type { Ground } from "./ground.ts";
import { writtenObjects, type WrittenKinds } from "./informers.ts";
import { operationDeps } from "./open-operations.ts";
import type { OperationDeps } from "./operations/index.ts";
import { Sweeps, sweepTroubleOf } from "./orphan/index.ts";
import { onlyComplete, orphanWork } from "./orphan-work.ts";
import {
  fileStateOf,
  imagesNaming,
  imagesOn,
  keysOf,
  hasCountedAttempts,
  heirIn,
  looksAs,
  standing,
} from "./related.ts";
import { createMakingTime, createReports, type Reports } from "./reports/index.ts";
import { Places, reconcileVm, type VmCache } from "./virtual-machine/index.ts";
import { imagesWanted, reconcileImage, unmetBy, wishesFor } from "./vm-image/index.ts";
import type { ImageCache } from "./vm-image/index.ts";

const concurrencyDefault = 32;
/** What a tick does not show, as a changed note or cable, is seen at the latest then. */
const vmResyncMs = 60 * 60_000;
/** Of machines that waited for the same hypervisor, so many are woken in so long. */
const wakesPerPace = 20;
const paceMs = 200;
/** The controllers of one term of leadership, and what they share. */
export class Reign {
  readonly #ground: Ground;
  readonly #connections = new Connections();
  readonly #ledger: Ledger;
  readonly #files: FileLedger;
  readonly #events: EventRecorder;
  readonly #written: WrittenKinds;
  readonly #sessions = new Map<string, Session>();
  readonly #vmMemory = new Map<string, VmCache>();
  readonly #imageMemory = new Map<string, ImageCache>();
  readonly #sweeps = new Sweeps();
  readonly #places = new Places();
  readonly #hypervisorDeps: HypervisorDeps;
  readonly #orphanWork: ReturnType<typeof orphanWork>;
  readonly #amnesia: Amnesia | undefined;
  readonly #controllers: Record<
    "claim" | "hypervisor" | "image" | "vm" | "sweep" | "orphan",
    Controller
  >;
  readonly #reports: Reports;
  /** Shared by all kinds: slots and tasks are the same for all of them. */
  readonly #operations: OperationDeps;
  readonly #unlisten: () => void;
  readonly #unfollow: () => void;

  constructor(ground: Ground) {
    this.#ground = ground;
    const { options, informers, installation, identity: instance } = ground;
    const { client, clock, random } = options;
    this.#ledger = new Ledger({ client, claims: informers.claims, clock, installation });
    this.#files = new FileLedger({ client, clock, ledger: this.#ledger });
    this.#written = writtenObjects(informers);
    this.#ledger.systemOf = (name) => this.#written.hypervisors.get(name)?.spec.systemId;
    const component = "berth.dev/controllers";
    this.#events = createEventRecorder({ client, clock, random, component, instance });
    const { log } = options;
    const { operations: metrics, places } = ground.meters;
    this.#reports = createReports({ clock, events: this.#events, log, metrics });
    this.#operations = operationDeps(ground, this.#written, {
      reports: this.#reports,
      sessions: this.#sessions,
    });
    const { hypervisors } = informers;
    this.#unfollow = places.follow({
      hypervisors,
      inventoryOf: (name) => this.#inventoryOf(name),
      slots: () => ground.slots.view(),
    });
    this.#hypervisorDeps = this.#depsOfHypervisors();
    this.#orphanWork = this.#workOfOrphans();
    const { forgets } = options;
    this.#amnesia = forgets && new Amnesia(forgets, () => this.#remembered());
    this.#controllers = {
      claim: this.#startClaims(),
      hypervisor: this.#startHypervisors(),
      image: this.#startImages(),
      vm: this.#startVms(),
      sweep: this.#start(this.#orphanWork.sweep),
      orphan: this.#start(this.#orphanWork.orphan),
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
    const shared = { ...options, ...timed, clock, random, classify, onError, metrics };
    if (this.#amnesia === undefined) return startController(shared);
    return startController({ ...shared, reconcile: this.#amnesia.around(options) });
  }

  #remembered(): Remembered {
    return {
      hypervisor: this.#hypervisorDeps,
      ledger: this.#ledger,
      slots: this.#ground.slots,
      sweeps: this.#sweeps,
      operations: this.#operations,
      places: this.#places,
      vms: this.#written.vms,
      images: this.#written.images,
      orphans: this.#written.orphans,
      vmMemory: this.#vmMemory,
      imageMemory: this.#imageMemory,
      orphanMemory: this.#orphanWork.memory,
    };
  }

  #inventoryOf(hypervisor: string): Inventory | undefined {
    const reach = this.#connections.of(hypervisor);
    return reach.is === "ready" ? reach.connection.inventory : undefined;
  }

  #startClaims(): Controller {
    const { options, informers } = this.#ground;
    const { claims, images } = informers;
    const { clock, client } = options;
    const heirOf = heirIn(images);
    const deps = { claims, ledger: this.#ledger, files: this.#files, heirOf, clock, client };
    const reconcile = (key: string): ReturnType<typeof reconcileClaim> => reconcileClaim(key, deps);
    const sources = [ownObjects(claims), onlyComplete(images)];
    return this.#start({ name: "claim", sources, reconcile });
  }

  #depsOfHypervisors(): HypervisorDeps {
    const { options, informers, run } = this.#ground;
    const { hypervisors, vms } = informers;
    const { client, clock, random, connect, tickMs } = options;
    return {
      client,
      clock,
      random,
      connect,
      tickMs,
      run,
      beganMs: clock.nowMs(),
      events: this.#events,
      hypervisors,
      vms,
      connections: this.#connections,
      ledger: this.#ledger,
      objects: this.#written.hypervisors,
      sessions: this.#sessions,
      sweepTroubleOf: (hypervisor: Hypervisor) => sweepTroubleOf(hypervisor, clock.nowMs()),
      reports: this.#reports,
      lookNow: (name: string) => this.#controllers.hypervisor.wake(name),
    };
  }

  #startHypervisors(): Controller {
    const { hypervisors, vms, claims } = this.#ground.informers;
    return this.#start({
      name: "hypervisor",
      sources: [ownObjects(hypervisors), onlyComplete(vms), onlyComplete(claims)],
      reconcile: (key) => reconcileHypervisor(key, this.#hypervisorDeps),
    });
  }

  #startImages(): Controller {
    const { options, informers } = this.#ground;
    const { images, vms, hypervisors, claims } = informers;
    const { client, clock, random } = options;
    const deps = {
      client,
      clock,
      random,
      vms,
      hypervisors,
      connections: this.#connections,
      files: this.#files,
      operations: this.#operations,
      images: this.#written.images,
      allImages: images,
      web: options.web,
      memory: this.#imageMemory,
      reports: this.#reports,
      wake: (key: string) => this.#controllers.image.wake(key),
    };
    return this.#start({
      name: "image",
      sources: [
        ownObjects(images),
        relatedObjects(vms, imagesWanted, wishesFor),
        // Those that wait for a file which another one brings, and those that were given one.
        relatedObjects(claims, imagesNaming(images), fileStateOf),
        relatedObjects(hypervisors, imagesOn(images), ({ metadata }) => metadata.deletionTimestamp),
      ],
      reconcile: (key) => reconcileImage(key, deps),
    });
  }

  #startVms(): Controller {
    const { options, informers, slots, mayWrite, writableInMs, digestKey } = this.#ground;
    const { vms, hypervisors, classes, images, networks, claims } = informers;
    const { client, clock, random } = options;
    const deps = {
      client,
      clock,
      random,
      slots,
      operations: this.#operations,
      places: this.#places,
      fence: { mayWrite },
      writableInMs,
      digestKey,
      vms: this.#written.vms,
      lookups: { vms, hypervisors, classes, images, networks },
      imageRefusal: unmetBy,
      connections: this.#connections,
      ledger: this.#ledger,
      events: this.#events,
      reports: this.#reports,
      memory: this.#vmMemory,
      beganMs: clock.nowMs(),
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
      spent: (key, ownMs) => making.spent(key, ownMs, this.#written.vms.get(key)),
    });
  }

  /** What looks for things that nothing declares, and what does what is decided about them. */
  #workOfOrphans(): ReturnType<typeof orphanWork> {
    return orphanWork(this.#ground, {
      connections: this.#connections,
      ledger: this.#ledger,
      events: this.#events,
      sweeps: this.#sweeps,
      written: this.#written,
      operations: this.#operations,
      reports: this.#reports,
      wakeOrphan: (name) => this.#controllers.orphan.wake(name),
      destroyed: (name, externalId) => {
        void this.#forgetVolume(name, externalId);
      },
    });
  }

  /** If it cannot be written down, it is believed a little later. */
  async #forgetVolume(name: string, volume: string): Promise<void> {
    await this.#ledger.forgetVolume(name, volume).catch((error: unknown) => {
      const fields = { hypervisor: name, volume, error: String(error) };
      this.#ground.options.log("warn", "a volume that is gone cannot be forgotten yet", fields);
    });
    this.#retryFailed(name);
  }

  #hypervisorChanged(name: string): void {
    const { informers, slots } = this.#ground;
    slots.refresh();
    this.#controllers.sweep.wake(name);
    // What failed for want of the hypervisor is tried at once; other retries keep their time.
    const isUntried = ({ status }: VirtualMachine): boolean => status?.failure?.step === undefined;
    const vms = informers.vms.byIndex("hypervisor", name);
    this.#skipBackoff(vms.filter(isUntried));
    this.#wakePaced(vms.map(({ metadata }) => objectKey(metadata)));
    this.#wakeImages();
  }

  /** The world has changed for them: a failure does not wait for its retry. */
  #skipBackoff(vms: readonly VirtualMachine[]): void {
    for (const { metadata } of vms) {
      const memory = this.#vmMemory.get(objectKey(metadata)) ?? {};
      this.#vmMemory.set(objectKey(metadata), { ...memory, skipsBackoff: true });
    }
  }

  #wakeImages(): void {
    for (const { metadata } of this.#ground.informers.images.list()) {
      this.#controllers.image.wake(objectKey(metadata));
    }
  }

  #retryFailed(name: string): void {
    const vms = this.#ground.informers.vms.byIndex("hypervisor", name);
    const failed = vms.filter(({ status }) => status?.failure !== undefined);
    this.#skipBackoff(failed.filter((vm) => !hasCountedAttempts(vm)));
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
