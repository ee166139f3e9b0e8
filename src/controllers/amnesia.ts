import type { Hypervisor, Orphan, VirtualMachine, VMImage } from "../api/index.ts";
import { hypervisorKind, orphanKind, virtualMachineKind, vmImageKind } from "../api/index.ts";
import type { ControllerOptions, Outcome, Slots } from "../runtime/index.ts";
import type { Ledger, WrittenObjects } from "./claims/index.ts";
import { reconnect, type HypervisorDeps } from "./hypervisor/index.ts";
import type { OperationDeps } from "./operations/index.ts";
import type { OrphanCache, Sweeps } from "./orphan/index.ts";
import type { Places, VmCache } from "./virtual-machine/index.ts";
import type { ImageCache } from "./vm-image/index.ts";

/** All that the controllers of one term remember. */
export interface Remembered {
  readonly hypervisor: HypervisorDeps;
  readonly ledger: Ledger;
  readonly slots: Slots;
  readonly sweeps: Sweeps;
  readonly operations: OperationDeps;
  readonly places: Places;
  readonly vms: WrittenObjects<VirtualMachine>;
  readonly images: WrittenObjects<VMImage>;
  readonly orphans: WrittenObjects<Orphan>;
  readonly vmMemory: Map<string, VmCache>;
  readonly imageMemory: Map<string, ImageCache>;
  readonly orphanMemory: Map<string, OrphanCache>;
}

/** A turn of a controller: the name of the controller, and the key of the object. */
interface TurnOf {
  readonly controller: string;
  readonly key: string;
}

type Forgetful = Pick<ControllerOptions, "name" | "reconcile">;

/**
 * Turns of controllers that may remember nothing: as if the process had been started anew before a
 * turn, without the start itself. Turns come one after the other here, because a start would have
 * ended all others. For tests and histories only: nothing that Berth does well may rest on memory.
 */
export class Amnesia {
  readonly #forgets: () => boolean;
  readonly #remembered: () => Remembered;
  #last: Promise<unknown> = Promise.resolve();
  /** The objects were listed again since everything was forgotten. */
  #isListed = true;
  /** Hypervisors that were not connected again since, because no turn has asked for them. */
  readonly #unconnected = new Map<string, Hypervisor>();

  constructor(forgets: () => boolean, remembered: () => Remembered) {
    this.#forgets = forgets;
    this.#remembered = remembered;
  }

  /** The turns of a controller, each of which may forget. */
  around({ name: controller, reconcile }: Forgetful): Forgetful["reconcile"] {
    return (key) => {
      const mine = this.#last.then(() => this.#turn({ controller, key }, () => reconcile(key)));
      // Whoever asked for the turn hears how it ended.
      this.#last = mine.catch(() => undefined);
      return mine;
    };
  }

  async #turn(of: TurnOf, run: () => Promise<Outcome>): Promise<Outcome> {
    const remembered = this.#remembered();
    if (this.#forgets() || !this.#isListed) {
      this.#isListed = false;
      forgetAll(remembered);
      this.#unconnected.clear();
      for (const one of await relist(remembered)) {
        this.#unconnected.set(one.metadata.name ?? "", one);
      }
      this.#isListed = true;
    }
    await this.#connect(hypervisorsOf(of, remembered) ?? [...this.#unconnected.keys()]);
    return run();
  }

  /** Only those that the turn asks about: a start connects all, which is most of its time. */
  async #connect(names: readonly string[]): Promise<void> {
    const { hypervisor: deps } = this.#remembered();
    const wanted = names.flatMap((name) => this.#unconnected.get(name) ?? []);
    await Promise.all(wanted.map((one) => reconnect(one, deps)));
    for (const name of names) this.#unconnected.delete(name);
  }
}

/** The Hypervisors that a turn may ask about, by name; undefined: any of them. */
function hypervisorsOf(
  { controller, key }: TurnOf,
  { vms, orphans }: Remembered,
): readonly string[] | undefined {
  switch (controller) {
    case "claim":
      return [];
    case "hypervisor":
    case "sweep":
      return [key];
    case "vm":
      return namesOf(vms.get(key)?.spec.hypervisorRef.name);
    case "orphan":
      return namesOf(orphans.get(key)?.spec.hypervisor);
    default:
      return undefined;
  }
}

function namesOf(name: string | undefined): readonly string[] {
  return name === undefined ? [] : [name];
}

/** Drops everything: only the objects of the API and the hypervisors remain. */
function forgetAll(remembered: Remembered): void {
  const { hypervisor, ledger, slots, sweeps, places } = remembered;
  const { memory: operations, pace } = remembered.operations;
  const { vms, images, orphans, vmMemory, imageMemory, orphanMemory } = remembered;
  for (const { driver } of hypervisor.sessions.values()) driver.close();
  hypervisor.sessions.clear();
  const { objects: hypervisors, connections } = hypervisor;
  const own = [
    // Before the operations, which give theirs back: nobody who waited for them is woken by it.
    slots,
    operations,
    connections,
    ledger,
    sweeps,
    pace,
    places,
    hypervisors,
    vms,
    images,
    orphans,
  ];
  for (const one of own) one.forgetAll();
  for (const memory of [vmMemory, imageMemory, orphanMemory]) memory.clear();
}

/**
 * Lists the objects, as after a start, by reads only. Slots of open operations are taken when the
 * first is asked. Resolves with the Hypervisors, none of which is connected.
 */
async function relist(remembered: Remembered): Promise<readonly Hypervisor[]> {
  const { hypervisor: deps, ledger } = remembered;
  const { client } = deps;
  const [vms, hypervisors, images, orphans] = await Promise.all([
    client.of(virtualMachineKind).list(),
    client.of(hypervisorKind).list(),
    client.of(vmImageKind).list(),
    client.of(orphanKind).list(),
    ledger.relist(),
  ]);
  for (const vm of vms.items) remembered.vms.note(vm);
  for (const image of images.items) remembered.images.note(image);
  for (const orphan of orphans.items) remembered.orphans.note(orphan);
  for (const one of hypervisors.items) deps.objects.note(one);
  return hypervisors.items;
}
