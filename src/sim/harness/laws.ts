import type { ClaimSpec, VirtualMachine } from "../../api/index.ts";
import type { PveRequest } from "../../drivers/proxmox/index.ts";
import type { Records, VmChange } from "./records.ts";
import type { Origin, Site } from "./site.ts";
import { Violation } from "./violation.ts";
import { nameOf, subjectOf } from "./wire.ts";

/** How old an observation may be when it is written down: a slow reply, and the steps after it. */
const observationMs = 120_000;

/** The laws that can be checked at any moment. Each throws a Violation. */
export class Laws {
  readonly #records: Records;
  readonly #sites: ReadonlyMap<string, Site>;
  /** By object and disk, what may not go with the machine that is being deleted. */
  readonly #staying = new Map<string, readonly object[]>();

  constructor(records: Records, sites: ReadonlyMap<string, Site>) {
    this.#records = records;
    this.#sites = sites;
  }

  /** Law 4: a machine that once stood goes only when its object is deleted, and says so. */
  whenGone(site: Site, id: string, { uid }: Origin): void {
    const claim = this.#records.claimOf(site.name, id)?.spec;
    if (claim?.role === "Keeper") return demandEmpty(site, claim);
    const vm = [...this.#records.vms.values()].find(({ metadata }) => metadata.uid === uid);
    if (claim?.everStood !== true || claim.owner.uid !== uid || vm === undefined) return;
    const what = `the machine ${id} of ${vm.metadata.name} on ${site.name} was destroyed`;
    if (vm.metadata.deletionTimestamp === undefined) {
      throw new Violation(4, `${what}, and nobody deletes it`);
    }
    if (vm.spec.deletionPolicy === "Retain") throw new Violation(4, `${what}, and it is Retain`);
  }

  /** Law 5: what is about to be done, and to what, is on the disk before it is sent. */
  beforeEffect(site: Site, request: PveRequest): void {
    const id = subjectOf(request);
    if (id === undefined) return;
    const what = (): string => `${nameOf(request)} on ${site.name} was sent without`;
    const owner = this.#holderOf(site, id);
    if (owner === undefined) throw new Violation(5, `${what()} a Claim of ${id}`);
    if (!this.#hasIntent(owner)) throw new Violation(5, `${what()} an intent of ${owner.name}`);
    const isCreate = request.method === "POST" && request.path.endsWith("/qemu");
    if (isCreate) site.creates.set(id, owner.uid ?? "");
  }

  #holderOf(site: Site, id: string): ClaimSpec["owner"] | undefined {
    const claim = this.#records.claimOf(site.name, id)?.spec;
    const isHeld = claim?.state === "Reserved" || claim?.state === "Bound";
    return isHeld ? claim.owner : undefined;
  }

  #hasIntent({ namespace, name, uid }: ClaimSpec["owner"]): boolean {
    const vm = this.#records.vms.get(`${namespace}/${name}`);
    return vm?.metadata.uid === uid && vm?.status?.operation !== undefined;
  }

  /** Laws 1 and 3, after every event. */
  atEveryEvent(): void {
    const machines = new Map<string, readonly [id: string, site: Site]>();
    for (const site of this.#sites.values()) {
      site.survey();
      for (const [id, { uid }] of site.guests) {
        if (uid === undefined || site.isEmptyReservation(id) || this.#isKeeper(site, id)) continue;
        const other = machines.get(uid);
        if (other !== undefined) {
          const both = `${other[0]} on ${other[1].name} and ${id} on ${site.name}`;
          throw new Violation(1, `one object has two machines: ${both}`);
        }
        machines.set(uid, [id, site]);
      }
    }
  }

  #isKeeper(site: Site, id: string): boolean {
    return this.#records.claimOf(site.name, id)?.spec.role === "Keeper";
  }

  /** Laws 2, 4 and 7, at every change of a VirtualMachine. */
  atVmChange({ before, after }: VmChange): void {
    if (after === undefined) {
      if (before !== undefined) this.#demandLeft(before);
      return;
    }
    const became = (is: (vm: VirtualMachine) => boolean): boolean => {
      return is(after) && !(before !== undefined && is(before));
    };
    if (became(isLeaving)) this.#noteStaying(after);
    if (became(isReady)) this.#demandSeen(after);
    if (became(isMissing)) this.#demandGone(after);
  }

  #demandLeft(vm: VirtualMachine): void {
    this.#demandNothingLeft(vm);
    this.#demandKept(vm);
  }

  /** The object is gone: so is what was made for it, or somebody else knows of it. */
  #demandNothingLeft({ metadata }: VirtualMachine): void {
    for (const site of this.#sites.values()) {
      for (const id of site.guestsOf(metadata.uid ?? "")) {
        if (this.#records.claimOf(site.name, id)?.spec.state === "Released") continue;
        const what = `${metadata.name} is gone and its machine ${id} on ${site.name} is not`;
        throw new Violation(2, what);
      }
    }
  }

  /** The volumes of its disks that say Retain, whatever they will be called. */
  #noteStaying({ metadata, status }: VirtualMachine): void {
    const { hypervisor = "", externalId = "", disks = [] } = status ?? {};
    const site = this.#sites.get(hypervisor);
    for (const { name, volume = "" } of disks) {
      const found = site?.volumesNamed(volume, externalId) ?? [];
      if (found.length > 0) this.#staying.set(stayKey(metadata, name), found);
    }
  }

  /** Law 4: a disk that says Retain to the end outlives its machine. */
  #demandKept({ metadata, spec, status }: VirtualMachine): void {
    const site = this.#sites.get(status?.hypervisor ?? "");
    for (const { name, onDelete } of spec.disks ?? []) {
      const noted = this.#staying.get(stayKey(metadata, name)) ?? [];
      this.#staying.delete(stayKey(metadata, name));
      if (onDelete !== "Retain" || noted.length === 0) continue;
      if (site?.hasAny(noted) === true) continue;
      throw new Violation(4, `the disk ${name} of ${metadata.name} says Retain, and is gone`);
    }
  }

  #demandSeen(vm: VirtualMachine): void {
    const { externalId = "", hypervisor = "" } = vm.status ?? {};
    const site = this.#sites.get(hypervisor);
    const name = vm.metadata.name;
    const power = vm.spec.powerState === "Running" ? "Running" : "Stopped";
    const isThere = site?.wasThereWithin(externalId, observationMs) ?? false;
    if (!isThere) throw new Violation(7, `${name} is Ready and there is no ${externalId}`);
    if (site?.hadPowerWithin(externalId, power, observationMs) !== true) {
      throw new Violation(7, `${name} is Ready and ${externalId} was not ${power}`);
    }
  }

  #demandGone(vm: VirtualMachine): void {
    const { externalId = "", hypervisor = "" } = vm.status ?? {};
    const site = this.#sites.get(hypervisor);
    if (site?.wasAbsentWithin(externalId, observationMs) !== false) return;
    throw new Violation(7, `${vm.metadata.name} is called Missing and ${externalId} is there`);
  }
}

/** A keeper goes only when it keeps nothing any more. */
function demandEmpty({ name }: Site, { externalId, volumes = [] }: ClaimSpec): void {
  if (!volumes.some(({ onDelete }) => onDelete === "Retain")) return;
  throw new Violation(4, `the keeper ${externalId} on ${name} was destroyed with what it keeps`);
}

function isLeaving({ metadata }: VirtualMachine): boolean {
  return metadata.deletionTimestamp !== undefined;
}

function stayKey({ uid = "" }: VirtualMachine["metadata"], disk: string): string {
  return `${uid} ${disk}`;
}

export function isReady({ metadata, status }: VirtualMachine): boolean {
  if (status?.observedGeneration !== metadata.generation) return false;
  return (
    status?.conditions?.some(({ type, status: is }) => type === "Ready" && is === "True") ?? false
  );
}

function isMissing({ status }: VirtualMachine): boolean {
  return status?.failure?.category === "Missing";
}
