import type { Claim, VirtualMachine } from "../../api/index.ts";
import { Patience } from "./laws-retry.ts";
import { chosenNames, isNamed, isProvable } from "./provable.ts";
import { isPaused, isReady, isSaidReady } from "./readiness.ts";
import { isHeld, type ClaimChange, type Records, type VmChange } from "./records.ts";
import type { Site } from "./site.ts";
import { Violation } from "./violation.ts";
import type { Wire } from "./wire.ts";

/** How old an observation may be when it is written down: a slow reply, and the steps after it. */
const observationMs = 120_000;
/** What a configuration says of a size is rounded. */
const roundingBytes = 1024 ** 2;

export interface ObjectLawsOptions {
  readonly records: Records;
  readonly sites: ReadonlyMap<string, Site>;
  readonly wires: ReadonlyMap<string, Wire>;
  readonly nowMs: () => number;
  /** What other lives of the installation keep. */
  readonly others?: () => readonly Records[];
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
  #noteStaying({ metadata, spec, status }: VirtualMachine): void {
    const { hypervisor = spec.hypervisorRef.name, externalId = "", disks = [] } = status ?? {};
    const site = this.#options.sites.get(hypervisor);
    for (const { name, volume = "" } of disks) {
      const found = site?.volumesNamed(volume, externalId) ?? [];
      if (found.length > 0) this.#staying.set(stayKey(metadata, name), found);
    }
  }

  /** Law 4: a disk that says Retain to the end outlives its machine. */
  #demandKept({ metadata, spec, status }: VirtualMachine): void {
    const site = this.#options.sites.get(status?.hypervisor ?? spec.hypervisorRef.name);
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
    if (after === undefined || !isHeld(after.spec)) {
      if (wasHeld) this.#atGivenUp(before, after);
      return;
    }
    if (wasHeld) demandSameOwner(before, after);
    else if (!this.#wasThere(after)) this.#demandRested(before);
  }

  #atGivenUp(before: Claim, after: Claim | undefined): void {
    if (after?.spec.state !== "Released") this.#demandAbsence(before);
    this.#noteAwaited(before);
    const [site] = this.#placeOf(before.spec.hypervisor.name);
    for (const key of resizedOn(site, before.spec)) this.#options.records.resized.add(key);
  }

  /** A VM of Berth's exists under the id: it is taken over or destroyed. It may go meanwhile. */
  #wasThere({ spec: { externalId, hypervisor, everExisted } }: Claim): boolean {
    const [site] = this.#placeOf(hypervisor.name);
    site.survey();
    if (site.guests.get(externalId)?.by === "berth") return true;
    return everExisted && site.wasThereWithin(externalId, observationMs);
  }

  /** The object is gone: so is what was made for it, or somebody else knows of it. */
  #demandNothingLeft({ metadata }: VirtualMachine): void {
    const { sites, records, others } = this.#options;
    const ledgers = [records, ...(others?.() ?? [])];
    for (const site of sites.values()) {
      for (const id of site.guestsOf(metadata.uid ?? "")) {
        const claims = ledgers.map((one) => one.claimOf(site.name, id));
        if (claims.some((claim) => claim?.spec.state === "Released")) continue;
        // A copy of the installation knows it: people remove that with the copy.
        if (claims.slice(1).some((claim) => claim !== undefined && isHeld(claim.spec))) continue;
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

  /**
   * A volume is allocated without a task, for as long as the server takes: when nothing was heard
   * of it within the window of its request, its Claim is given up, and it may still come.
   */
  #noteAwaited({ spec: { allocation, hypervisor } }: Claim): void {
    const { records } = this.#options;
    const there = [...this.#placeOf(hypervisor.name)[0].guestVolumes()];
    for (const id of chosenNames(allocation)) {
      if (!there.some(({ name }) => isNamed(id, name))) records.awaited.add(id);
    }
  }

  #placeOf(name: string): readonly [Site, Wire] {
    const site = this.#options.sites.get(name);
    const wire = this.#options.wires.get(name);
    if (site === undefined || wire === undefined) throw new Error(`there is no ${name}`);
    return [site, wire];
  }

  /**
   * What the late requests of an earlier VM may hit must not be somebody else's new VM. One that
   * exists under the id already, as such a request made it, is claimed to be adopted or destroyed.
   */
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
  #lookedMs({ spec, status }: VirtualMachine): number {
    const { externalId = "", hypervisor = spec.hypervisorRef.name } = status ?? {};
    return this.#options.wires.get(hypervisor)?.lookedMs.get(externalId) ?? -Infinity;
  }

  #demandSeen(vm: VirtualMachine): void {
    const { externalId = "", hypervisor = vm.spec.hypervisorRef.name } = vm.status ?? {};
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
    const disk = missingDisk(vm);
    if (disk !== undefined) return demandLost(vm, disk);
    const { externalId = "", hypervisor = vm.spec.hypervisorRef.name } = vm.status ?? {};
    const site = this.#options.sites.get(hypervisor);
    demandNothingClaimed(vm);
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

/**
 * Volumes of a Claim that have another size than it says: somebody made them larger, and nobody saw
 * them in their place since. A free name is used again, so nothing proves that they are the same.
 */
function resizedOn(site: Site, claim: Claim["spec"]): string[] {
  const { volumes = [] } = claim;
  return [...site.guestVolumes()]
    .filter((volume) => isProvable(claim, volume))
    .filter(({ name, volume: { sizeBytes } }) => {
      const { size, growsTo = size } = volumes.find(({ id }) => isNamed(id, name)) ?? {};
      const isThat = (said: string): boolean => Math.abs(Number(said) - sizeBytes) < roundingBytes;
      return size !== undefined && ![size, growsTo ?? size].some(isThat);
    })
    .map(({ key }) => `${site.name} ${key}`);
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

/** Law 7: of a VM that does not exist nothing was observed, so its status says nothing of it. */
function demandNothingClaimed({ metadata, status = {} }: VirtualMachine): void {
  const { powerState, addresses, disks, networks, conditions = [] } = status;
  const fields = Object.entries({ powerState, addresses, disks, networks });
  const runs = conditions.some(({ type, status: is }) => type === "Running" && is === "True");
  const claimed = fields.flatMap(([name, value]) => (value === undefined ? [] : [name]));
  if (runs) claimed.push("Running");
  if (claimed.length === 0) return;
  throw new Violation(7, `${metadata.name} is called Missing and shows ${claimed.join(", ")}`);
}

/** Also a disk of a VM that exists is called Missing. */
function missingDisk({ status }: VirtualMachine): string | undefined {
  return /^The disk (\S+) was the machine's/.exec(status?.failure?.message ?? "")?.[1];
}

/** Law 7: a disk that is called Missing is not shown as attached. */
function demandLost({ metadata, status }: VirtualMachine, disk: string): void {
  if (status?.disks?.some(({ name }) => name === disk) !== true) return;
  throw new Violation(7, `${metadata.name} calls its disk ${disk} Missing, and shows it`);
}

function isMissing({ status }: VirtualMachine): boolean {
  return status?.failure?.category === "Missing";
}
