import { annotations, claimKind } from "../../api/index.ts";
import type { Claim, ClaimSpec, VirtualMachine } from "../../api/index.ts";
import { isOutcomeUnknown, type Client, type Informer } from "../../client/index.ts";
import { formatTime, type Clock } from "../../kernel/clock.ts";
import { guard, precondition } from "../../kernel/guard.ts";
import { objectKey } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";
import { answered, failed, type Answer, type Failure } from "../../hypervisor/index.ts";
import { claimName } from "./claim-name.ts";
import { isFile } from "./files.ts";
import { Grants } from "./grants.ts";
import { hasOwnerLabel, listOwned, unlabelled, withOwnerLabel } from "./owner-label.ts";
import { draftClaim, type Reservation, type Reserved } from "./reservation.ts";
import { strangersClaim } from "./strangers-claim.ts";
import { isCounted, isHeld, isHolder, isMachine, isOwner, isPending, isSame } from "./whose.ts";
import { WrittenObjects } from "./written.ts";

export interface LedgerOptions {
  readonly client: Client;
  /** With the index `owner`: see `claim-indexes.ts`. */
  readonly claims: Informer<Claim>;
  readonly clock: Clock;
  readonly installation: string;
}

/** How long an id of Berth's own choice rests after its machine was deleted. */
export const quarantineMs = 24 * 60 * 60 * 1000;

/**
 * Which machine belongs to whom.
 *
 * Guarantees: an id has one Claim at most, because its name is a hash of both. A Claim that another
 * object holds is never changed. Every write names the version that it replaces; one whose reply
 * was lost is looked up before anything rests on it. All methods are safe to repeat.
 */
export class Ledger {
  readonly #options: LedgerOptions;
  readonly #claims: WrittenObjects<Claim>;
  readonly #grants: Grants;
  readonly #client;

  constructor(options: LedgerOptions) {
    this.#options = options;
    this.#claims = new WrittenObjects(options.claims);
    this.#grants = new Grants(options.claims);
    this.#client = options.client.of(claimKind);
  }

  forgetAll(): void {
    this.#claims.forgetAll();
    this.#grants.forgetAll();
  }

  /** As the server has them now: what this process wrote is not in any list yet. */
  async relist(): Promise<void> {
    const { items } = await this.#client.list();
    for (const claim of items) this.#claims.note(claim);
  }

  get installation(): string {
    return this.#options.installation;
  }

  /** Ids on a system that nobody should choose: claimed, resting, or let go and still there. */
  idsOn(systemId: string): string[] {
    return this.#claims.byIndex("system", systemId).map(({ spec }) => spec.externalId);
  }

  /** Claims that keep a Hypervisor from going away. For a Pending one it never heard anything. */
  countOn(hypervisor: string): number {
    const claims = this.#claims.byIndex("hypervisor", hypervisor);
    return claims.filter(({ spec }) => isHeld(spec) && !isPending(spec)).length;
  }

  /** Disk-holder VMs whose objects are gone, with disks that say onDelete: Retain. */
  retainingOn(hypervisor: string): Claim[] {
    return this.#claims.byIndex("hypervisor", hypervisor).filter(({ spec }) => {
      const isLeft = spec.role === "DiskHolder" && spec.state === "Released";
      return isLeft && spec.volumes?.some(({ onDelete }) => onDelete === "Retain") === true;
    });
  }

  /** What the other machines of its namespace take on the system, as quotas count it. */
  heldBeside({ vm: { metadata }, hypervisor: { systemId } }: Reservation): ClaimSpec[] {
    return this.#grants
      .with(this.#claims.byIndex("system", systemId), systemId)
      .map(({ spec }) => spec)
      .filter(isCounted)
      .filter(({ owner }) => owner.namespace === metadata.namespace && owner.uid !== metadata.uid);
  }

  /**
   * Grants what a reservation takes, unless the caller refuses it in view of what the others have.
   * To count and to note is one step, so those who ask in the same moment see each other. It counts
   * until it was reserved, or until the server says that nothing was.
   */
  grant(
    reservation: Reservation,
    refuse: (held: readonly ClaimSpec[]) => Failure | undefined,
  ): Failure | undefined {
    const refusal = refuse(this.heldBeside(reservation));
    const draft = this.#draft(reservation);
    if (refusal === undefined) this.#grants.note(draft);
    else this.#grants.end(objectKey(draft.spec.owner));
    return refusal;
  }

  /** What all machines take on a system. */
  heldOn(systemId: string): ClaimSpec[] {
    return this.#claims
      .byIndex("system", systemId)
      .map(({ spec }) => spec)
      .filter(isCounted);
  }

  /** Volumes on a system that failed attempts probably left, whoever's they were. */
  probableOn(systemId: string): NonNullable<ClaimSpec["probableVolumes"]> {
    const claims = this.#claims.byIndex("system", systemId);
    return claims.flatMap(({ spec }) => spec.probableVolumes ?? []);
  }

  /** Keepers on a system that hold disks for objects of a namespace, in a fixed order. */
  keepersFor(namespace: string, systemId: string): ClaimSpec[] {
    return this.#claims
      .byIndex("system", systemId)
      .map(({ spec }) => spec)
      .filter(({ role, state }) => role === "DiskHolder" && state !== "Quarantined")
      .filter(({ owner, installation }) => {
        return owner.namespace === namespace && installation === this.installation;
      })
      .toSorted((a, b) => (a.externalId < b.externalId ? -1 : 1));
  }

  /** The Claim of an id, as far as this process knows it. */
  known(systemId: string, externalId: string): Claim | undefined {
    const claims = this.#claims.byIndex("system", systemId);
    return claims.find(({ spec }) => spec.externalId === externalId);
  }

  /** The Claim of an id as the server has it now, whoever holds it. */
  async read(systemId: string, externalId: string): Promise<Claim | undefined> {
    return this.#read(claimName(systemId, externalId));
  }

  /**
   * The Claim that a VM holds. The id in its status names it. Without one it is looked for by its
   * owner, on the server: the status may be lost, and a list that lies here may be old.
   */
  async find(vm: VirtualMachine): Promise<Answer<Claim | undefined>> {
    const named = await this.#named(vm);
    if (named !== undefined) return answered(named);
    const key = objectKey(vm.metadata);
    const owned = (await this.#ownedBy(vm)).filter(({ spec }) => isMachine(spec));
    // What was found to be creatable comes before what only waits for it.
    const claim = owned.find(({ spec }) => !isPending(spec)) ?? owned[0];
    if (claim !== undefined) return this.#rebound(claim, vm);
    this.#grants.end(key);
    return answered(undefined);
  }

  /** All Claims that name an object as their owner, as the server has them now. */
  async #ownedBy({ metadata }: VirtualMachine): Promise<Claim[]> {
    const key = objectKey(metadata);
    const found = await listOwned(this.#client, metadata);
    // One that comes from an export of 0.1 has no label yet, and neither has its Claim.
    const isImported = metadata.annotations?.[annotations.identity] !== undefined;
    const old = isImported ? (await this.#client.list({ labelSelector: unlabelled })).items : [];
    for (const claim of this.#claims.byIndex("owner", key).filter((one) => !hasOwnerLabel(one))) {
      const there = await this.#read(claim.metadata.name ?? "");
      if (there !== undefined) old.push(there);
    }
    const claims = new Map([...old, ...found].map((claim) => [claim.metadata.name, claim]));
    const all = [...claims.values()].filter(({ spec }) => !isFile(spec));
    const own = all.filter(({ spec }) => objectKey(spec.owner) === key);
    return own.map((claim) => this.#claims.note(claim));
  }

  /** Machines that this installation let go of, for an object of the same name on the system. */
  releasedBy({ owner, hypervisor, installation }: ClaimSpec): Claim[] {
    return this.#claims.byIndex("owner", objectKey(owner)).filter(({ spec }) => {
      const isHere = spec.hypervisor.systemId === hypervisor.systemId;
      const isOurs = spec.installation === installation && spec.role === "VM";
      return spec.state === "Released" && spec.everExisted && isHere && isOurs;
    });
  }

  /** How many ids its owner let go of before a machine ever stood there: what is left is empty. */
  husksOf({ owner, hypervisor, installation }: ClaimSpec): number {
    const all = this.#claims.byIndex("owner", objectKey(owner)).filter(({ spec }) => {
      const isHere = spec.hypervisor.systemId === hypervisor.systemId;
      const isIts = spec.owner.uid === owner.uid && spec.installation === installation;
      return spec.state === "Released" && !spec.everExisted && isHere && isIts;
    });
    return all.filter(({ spec }) => spec.role === "VM").length;
  }

  /** How many ids an object gave up lately, before anything of it was there. */
  givenUpBy({ metadata }: Pick<VirtualMachine, "metadata">, systemId: string): number {
    const claims = this.#claims.byIndex("owner", objectKey(metadata));
    return claims.filter(({ spec }) => {
      const isIts = spec.owner.uid === metadata.uid && spec.hypervisor.systemId === systemId;
      return isIts && spec.state === "Quarantined" && !spec.everExisted;
    }).length;
  }

  /** The Claim under which an id was let go, as the server has it now. */
  async releasedAs(systemId: string, externalId: string): Promise<Claim | undefined> {
    const there = await this.#read(claimName(systemId, externalId));
    return there?.spec.state === "Released" ? there : undefined;
  }

  /** What would be reserved, for whoever has to look before. */
  draft(reservation: Reservation): ClaimSpec {
    return this.#draft(reservation).spec;
  }

  /** The Claim of another object under the id that this one asks for, as the server has it now. */
  async holder({ hypervisor, externalId, owner }: ClaimSpec): Promise<Claim | undefined> {
    const there = await this.#read(claimName(hypervisor.systemId, externalId));
    if (there === undefined || !isHeld(there.spec)) return undefined;
    return there.spec.owner.uid === owner.uid ? undefined : there;
  }

  /** Reserves an id: by creating its Claim, or by taking over one that nobody lives in. */
  async reserve(reservation: Reservation): Promise<Reserved> {
    const claim = this.#draft(reservation);
    const vmExists = reservation.isThere === true || claim.spec.everExisted;
    const reserved = await this.#reserve(claim, vmExists);
    if (reserved.is === "ours") this.#grants.renew(reserved.claim);
    else if (claim.spec.role === "VM") this.#grants.end(objectKey(claim.spec.owner));
    return reserved;
  }

  async #reserve(claim: Claim, vmExists: boolean): Promise<Reserved> {
    try {
      return { is: "ours", claim: this.#claims.note(await this.#client.create(claim)) };
    } catch (error) {
      const isThere = error instanceof ApiError && error.code === 409;
      if (!isThere && !isOutcomeUnknown(error)) throw error;
      const there = await this.#read(claim.metadata.name ?? "");
      // Our own earlier try, whose reply was lost or which a crash cut off.
      if (there === undefined) throw error;
      return this.#takeOver(there, claim, vmExists);
    }
  }

  async #takeOver(there: Claim, claim: Claim, vmExists: boolean): Promise<Reserved> {
    if (isHeld(there.spec)) {
      return guard("reserve-own-claim", isSame(there, claim)) ? ours(there) : taken(there);
    }
    const isFree = this.#isFree(there.spec, vmExists);
    if (!guard("reserve-free-claim", isFree)) return taken(there);
    const isKept = isPending(claim.spec) && there.spec.state === "Released";
    if (isKept) return { is: "released", claim: there };
    // What failed attempts probably left under the id is still there, whoever has the id now.
    const { probableVolumes: left } = there.spec;
    const kept = left === undefined ? {} : { probableVolumes: left };
    return ours(await this.#update(there, { ...claim.spec, ...kept }));
  }

  /** Changes what is known of a machine. */
  async record(claim: Claim, change: Partial<ClaimSpec>): Promise<Claim> {
    return this.#update(claim, { ...claim.spec, ...change });
  }

  /** Berth itself destroyed a volume: nobody has to wait until it is believed to be gone. */
  async forgetVolume(hypervisor: string, volume: string): Promise<void> {
    const claims = this.#claims.byIndex("hypervisor", hypervisor);
    for (const { metadata } of claims.filter(({ spec }) => isSeenUnder(spec, volume))) {
      await this.#forgetVolume(metadata.name ?? "", volume);
    }
  }

  async #forgetVolume(name: string, volume: string, tries = 5): Promise<void> {
    const claim = await this.#read(name);
    if (claim === undefined || !isSeenUnder(claim.spec, volume)) return;
    const otherVolumes = claim.spec.otherVolumes?.filter(({ id }) => id !== volume) ?? [];
    try {
      await this.record(claim, { otherVolumes });
    } catch (error) {
      // Its object looks at the same moment, and writes down what it sees.
      if (!(error instanceof ApiError) || error.code !== 409 || tries <= 1) throw error;
      await this.#forgetVolume(name, volume, tries - 1);
    }
  }

  /** The object has nothing to do with its keeper any more. */
  async forgetKeeper(claim: Claim): Promise<Claim> {
    const { diskHolder: _holder, ...spec } = claim.spec;
    return this.#update(claim, spec);
  }

  /** The machine is gone, proven. An id that Berth chose rests; a person's may be used at once. */
  async retire(claim: Claim): Promise<void> {
    if (claim.spec.idChosenBy === "User") return this.remove(claim);
    const untilMs = this.#options.clock.nowMs() + quarantineMs;
    const quarantineUntil = formatTime(untilMs);
    const { volumes: _volumes, diskHolder: _holder, ...spec } = claim.spec;
    await this.#update(claim, { ...spec, state: "Quarantined", quarantineUntil });
  }

  /** The machine was let go and stays where it is. The Claim is kept: it says whose it was. */
  async release(claim: Claim, releaseReason: string): Promise<void> {
    const releasedAt = formatTime(this.#options.clock.nowMs());
    const { diskHolder: _holder, ...spec } = claim.spec;
    await this.#update(claim, { ...spec, state: "Released", releasedAt, releaseReason });
  }

  /** Deletes this very version of a Claim. */
  async remove({ metadata, spec }: Claim): Promise<void> {
    const { name = "", uid = "", resourceVersion = "" } = metadata;
    try {
      const preconditions = { uid, resourceVersion };
      await this.#client.delete({ name }, precondition("claim-remove-version", { preconditions }));
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 404) throw error;
    }
    this.#claims.forget(name);
    if (spec.role === "VM" && !isFile(spec)) this.#grants.end(objectKey(spec.owner));
  }

  async #named(vm: VirtualMachine): Promise<Claim | undefined> {
    const { externalId } = vm.status ?? {};
    if (externalId === undefined) return undefined;
    const owned = this.#claims.byIndex("owner", objectKey(vm.metadata));
    const known = owned.find(({ spec }) => spec.externalId === externalId);
    if (known !== undefined && isHolder(known, vm)) return known;
    const systemId = this.#systemOf(vm);
    if (systemId === undefined) return undefined;
    const claim = await this.#read(claimName(systemId, externalId));
    return claim !== undefined && isHolder(claim, vm) ? claim : undefined;
  }

  /** Set by whoever knows the Hypervisor: a VM's status names the object, a Claim the system. */
  systemOf: (hypervisor: string) => string | undefined = () => undefined;

  #systemOf(vm: VirtualMachine): string | undefined {
    return this.systemOf(vm.status?.hypervisor ?? vm.spec.hypervisorRef.name);
  }

  /** The owner's own, or rebound to an object that proves to be the same one come back. */
  async #rebound(claim: Claim, vm: VirtualMachine): Promise<Answer<Claim>> {
    if (isOwner(claim, vm)) return answered(claim);
    const { uid = "", annotations: written } = vm.metadata;
    const isSameVm = written?.[annotations.identity] === claim.spec.identity;
    if (!guard("rebind-same-identity", isSameVm)) {
      return failed(strangersClaim(vm, claim));
    }
    const owner = { ...claim.spec.owner, uid };
    return answered(await this.#update(claim, { ...claim.spec, owner }));
  }

  async #read(name: string): Promise<Claim | undefined> {
    try {
      return this.#claims.note(await this.#client.get({ name }));
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 404) throw error;
      this.#claims.forget(name);
      return undefined;
    }
  }

  async #update(claim: Claim, spec: ClaimSpec): Promise<Claim> {
    const written = withOwnerLabel({ ...claim, spec });
    const updated = this.#claims.note(await this.#client.update(written));
    this.#grants.renew(updated);
    return updated;
  }

  /**
   * The quarantine protects a new VM from late requests for the one before it. A VM that exists
   * under the id already, to be adopted or destroyed, needs its Claim: waiting protects nothing.
   */
  #isFree({ state, quarantineUntil = "" }: ClaimSpec, vmExists: boolean): boolean {
    if (state === "Released" || vmExists) return true;
    const isOver = Date.parse(quarantineUntil) <= this.#options.clock.nowMs();
    return state === "Quarantined" && guard("claim-quarantine-over", isOver);
  }

  #draft(reservation: Reservation): Claim {
    const { installation, clock } = this.#options;
    return draftClaim(reservation, { installation, nowMs: clock.nowMs() });
  }
}

/** A volume of others that may keep a VM from being created under the id. */
function isSeenUnder({ state, otherVolumes = [] }: ClaimSpec, volume: string): boolean {
  return state !== "Bound" && otherVolumes.some(({ id }) => id === volume);
}

function ours(claim: Claim): Reserved {
  return { is: "ours", claim };
}

function taken(by: Claim): Reserved {
  return { is: "taken", by };
}
