import type { Claim, VirtualMachine } from "../../api/index.ts";
import { Patience } from "./laws-retry.ts";
import { isPaused, isReady, isSaidReady } from "./readiness.ts";
import { isHeld, type ClaimChange, type Records, type VmChange } from "./records.ts";
import type { Site } from "./site.ts";
import { Violation } from "./violation.ts";
import type { Wire } from "./wire.ts";

/** How old an observation may be when it is written down: a slow reply, and the steps after it. */
const observationMs = 120_000;

export interface ObjectLawsOptions {
  readonly records: Records;
  readonly sites: ReadonlyMap<string, Site>;
  readonly wires: ReadonlyMap<string, Wire>;
  readonly nowMs: () => number;
}

/** The laws that are checked when an object was written, and before its writer is answered. */
export class ObjectLaws {
  readonly #options: ObjectLawsOptions;
  /** By object and disk, what may not go with the machine that is being deleted. */
  readonly #staying = new Map<string, readonly object[]>();
  /** Law 6: how long whoever failed waits. */
  readonly #patience = new Patience();
  /** When a status was last written, by the object's uid. */
  readonly #statusMs = new Map<string, number>();

  constructor(options: ObjectLawsOptions) {
    this.#options = options;
  }

  /** Laws 2, 4, 6 and 7, at every change of a VirtualMachine. */
  atVmChange({ before, after }: VmChange): void {
    if (after === undefined) {
      if (before !== undefined) this.#demandLeft(before);
      return;
    }
    demandOrder(before, after);
    demandReached(after, this.#lookedMs(after));
    this.#patience.atChange(after);
    const became = (is: (vm: VirtualMachine) => boolean): boolean => {
      return is(after) && !(before !== undefined && is(before));
    };
    if (became(isLeaving)) this.#noteStaying(after);
    if (became(isReady) || this.#hasLooked({ before, after })) this.#demandSeen(after);
    if (became(isMissing)) this.#demandGone(after);
  }

  #demandLeft(vm: VirtualMachine): void {
    this.#demandNothingLeft(vm);
    this.#demandKept(vm);
  }

  /** The volumes of its disks that say Retain, whatever they will be called. */
  #noteStaying({ metadata, status }: VirtualMachine): void {
    const { hypervisor = "", externalId = "", disks = [] } = status ?? {};
    const site = this.#options.sites.get(hypervisor);
    for (const { name, volume = "" } of disks) {
      const found = site?.volumesNamed(volume, externalId) ?? [];
      if (found.length > 0) this.#staying.set(stayKey(metadata, name), found);
    }
  }

  /** Law 4: a disk that says Retain to the end outlives its machine. */
  #demandKept({ metadata, spec, status }: VirtualMachine): void {
    const site = this.#options.sites.get(status?.hypervisor ?? "");
    for (const { name, onDelete } of spec.disks ?? []) {
      const noted = this.#staying.get(stayKey(metadata, name)) ?? [];
      this.#staying.delete(stayKey(metadata, name));
      if (onDelete !== "Retain" || noted.length === 0) continue;
      if (site?.hasAny(noted) === true) continue;
      throw new Violation(4, `the disk ${name} of ${metadata.name} says Retain, and is gone`);
    }
  }

  /** Laws 2 and 3, at every change of a Claim. */
  atClaimChange({ before, after }: ClaimChange): void {
    if (before === undefined) return;
    const wasHeld = isHeld(before.spec);
    if (wasHeld && (after === undefined || after.spec.state === "Quarantined")) {
      this.#demandAbsence(before);
    }
    if (after === undefined || !isHeld(after.spec)) return;
    if (wasHeld) demandSameOwner(before, after);
    else this.#demandRested(before);
  }

  /** The object is gone: so is what was made for it, or somebody else knows of it. */
  #demandNothingLeft({ metadata }: VirtualMachine): void {
    const { sites, records } = this.#options;
    for (const site of sites.values()) {
      for (const id of site.guestsOf(metadata.uid ?? "")) {
        if (records.claimOf(site.name, id)?.spec.state === "Released") continue;
        const what = `${metadata.name} is gone and its machine ${id} on ${site.name} is not`;
        throw new Violation(2, what);
      }
    }
  }

  /** An id is given up only when nothing of ours is under it, and nothing can come any more. */
  #demandAbsence({ spec }: Claim): void {
    const { externalId: id, hypervisor, owner } = spec;
    const [site, wire] = this.#placeOf(hypervisor.name);
    site.survey();
    const what = `the Claim of ${id} on ${site.name} was given up, and`;
    const guest = site.guests.get(id);
    if (guest?.by === "berth" && guest.uid === owner.uid) {
      throw new Violation(2, `${what} its machine stands`);
    }
    if ((wire.creating.get(id) ?? 0) > 0) {
      throw new Violation(2, `${what} a request that makes it is on its way`);
    }
    if (site.model.cluster.processes.list().some(({ name }) => name === `qmcreate:${id}`)) {
      throw new Violation(2, `${what} a worker makes it`);
    }
  }

  #placeOf(name: string): readonly [Site, Wire] {
    const site = this.#options.sites.get(name);
    const wire = this.#options.wires.get(name);
    if (site === undefined || wire === undefined) throw new Error(`there is no ${name}`);
    return [site, wire];
  }

  /** What the late requests of an earlier machine may hit must not be somebody else's. */
  #demandRested({ spec }: Claim): void {
    const { state, quarantineUntil = "", externalId } = spec;
    if (state !== "Quarantined" || Date.parse(quarantineUntil) <= this.#options.nowMs()) return;
    throw new Violation(3, `the id ${externalId} was reserved again before its rest was over`);
  }

  /**
   * Whether a status says Ready after a look that was answered since the one before it: then it
   * tells what that look saw. One that is paused tells what was seen before.
   */
  #hasLooked({ before, after }: VmChange): boolean {
    if (after === undefined || isSameStatus(before, after)) return false;
    const { uid = "" } = after.metadata;
    const nowMs = this.#options.nowMs();
    const sinceMs = Math.max(this.#statusMs.get(uid) ?? -Infinity, nowMs - observationMs);
    this.#statusMs.set(uid, nowMs);
    return isReady(after) && !isPaused(after) && this.#lookedMs(after) > sinceMs;
  }

  /** When somebody was last told how its machine is. */
  #lookedMs({ status }: VirtualMachine): number {
    const { externalId = "", hypervisor = "" } = status ?? {};
    return this.#options.wires.get(hypervisor)?.lookedMs.get(externalId) ?? -Infinity;
  }

  #demandSeen(vm: VirtualMachine): void {
    const { externalId = "", hypervisor = "" } = vm.status ?? {};
    const site = this.#options.sites.get(hypervisor);
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
    const site = this.#options.sites.get(hypervisor);
    if (site?.wasAbsentWithin(externalId, observationMs) !== false) return;
    throw new Violation(7, `${vm.metadata.name} is called Missing and ${externalId} is there`);
  }
}

/**
 * Law 7: nothing is called Ready in the very words that say that nobody could look at it, unless it
 * was seen since: a failure stays in the status while the same is tried again.
 */
export function demandReached(vm: VirtualMachine, lookedMs: number): void {
  const { failure } = vm.status ?? {};
  if (failure?.category !== "NetworkError" || !isSaidReady(vm)) return;
  if (lookedMs >= Date.parse(failure.lastAt)) return;
  throw new Violation(7, `${vm.metadata.name} is Ready, and says: ${failure.message}`);
}

function isSameStatus(before: VirtualMachine | undefined, after: VirtualMachine): boolean {
  return JSON.stringify(before?.status) === JSON.stringify(after.status);
}

/** A machine has one owner for as long as its Claim is held. */
function demandSameOwner(before: Claim, { spec }: Claim): void {
  const { owner, externalId } = before.spec;
  if (owner.uid === spec.owner.uid) return;
  throw new Violation(
    3,
    `the Claim of ${externalId} was taken from ${owner.name} while it held it`,
  );
}

/** Law 7: what was once seen of a generation is not unseen, and nobody sees what is to come. */
function demandOrder(before: VirtualMachine | undefined, after: VirtualMachine): void {
  const { metadata, status } = after;
  const seen = status?.observedGeneration ?? 0;
  const { name, uid, generation = 0 } = metadata;
  if (seen > generation) {
    throw new Violation(7, `${name} says generation ${seen}, and there is only ${generation}`);
  }
  if (before?.metadata.uid === uid && before !== undefined) demandOnward(before, after);
}

/** Of one object: neither what is declared nor what was seen of it goes back. */
function demandOnward(before: VirtualMachine, { metadata, status }: VirtualMachine): void {
  const { name, generation = 0 } = metadata;
  const { generation: earlier = 0 } = before.metadata;
  if (generation < earlier) {
    throw new Violation("order", `${name} goes back from generation ${earlier} to ${generation}`);
  }
  const seen = status?.observedGeneration ?? 0;
  const last = before.status?.observedGeneration ?? 0;
  if (seen < last) throw new Violation(7, `${name} goes back to generation ${seen}`);
}

function isLeaving({ metadata }: VirtualMachine): boolean {
  return metadata.deletionTimestamp !== undefined;
}

function stayKey({ uid = "" }: VirtualMachine["metadata"], disk: string): string {
  return `${uid} ${disk}`;
}

function isMissing({ status }: VirtualMachine): boolean {
  return status?.failure?.category === "Missing";
}
