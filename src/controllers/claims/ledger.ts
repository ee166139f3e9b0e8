import { annotations, apiVersion, claimKind } from "../../api/index.ts";
import type { Claim, ClaimSpec, VirtualMachine } from "../../api/index.ts";
import { isOutcomeUnknown, type Client, type Informer } from "../../client/index.ts";
import { formatTime, type Clock } from "../../kernel/clock.ts";
import { objectKey } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";
import { answered, failed, type Answer, type Failure } from "../../hypervisor/index.ts";
import { claimName } from "./claim-name.ts";
import { Grants } from "./grants.ts";
import { WrittenObjects } from "./written.ts";

export interface LedgerOptions {
  readonly client: Client;
  /** With the index `owner`: see `claimIndexes`. */
  readonly claims: Informer<Claim>;
  readonly clock: Clock;
  readonly installation: string;
}

/** What a new Claim says. */
export interface Reservation {
  readonly vm: Pick<VirtualMachine, "metadata">;
  readonly hypervisor: ClaimSpec["hypervisor"];
  readonly externalId: string;
  readonly idChosenBy: ClaimSpec["idChosenBy"];
  readonly identity: string;
  readonly node: string;
  readonly preflightVolumes: readonly string[];
  /** Where they were listed; absent where they were not. */
  readonly preflightNode?: string;
  readonly resources: NonNullable<ClaimSpec["resources"]>;
  /** Of a machine that stands already: what is known of it. */
  readonly kept?: Partial<
    Pick<
      ClaimSpec,
      | "origin"
      | "everStood"
      | "volumes"
      | "preflightVolumes"
      | "preflightNode"
      | "idChosenBy"
      | "role"
    >
  >;
}

export type Reserved =
  | { readonly is: "ours"; readonly claim: Claim }
  | { readonly is: "taken"; readonly by: Claim };

export const claimIndexes = {
  owner: ({ spec }: Claim): string[] => [objectKey(spec.owner)],
  system: ({ spec }: Claim): string[] => [spec.hypervisor.systemId],
  hypervisor: ({ spec }: Claim): string[] => [spec.hypervisor.name],
};

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

  get installation(): string {
    return this.#options.installation;
  }

  /** Ids on a system that nobody should choose: claimed, resting, or let go and still there. */
  idsOn(systemId: string): string[] {
    return this.#claims.byIndex("system", systemId).map(({ spec }) => spec.externalId);
  }

  /** Claims that keep a Hypervisor from going away. */
  countOn(hypervisor: string): number {
    return this.#claims.byIndex("hypervisor", hypervisor).filter(({ spec }) => isHeld(spec)).length;
  }

  /** What the other machines of its namespace take on the system, as quotas count it. */
  heldBeside({ vm: { metadata }, hypervisor: { systemId } }: Reservation): ClaimSpec[] {
    return this.#grants
      .with(this.#claims.byIndex("system", systemId), systemId)
      .map(({ spec }) => spec)
      .filter(isMachine)
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
    if (refusal === undefined) this.#grants.note(this.#newClaim(reservation));
    return refusal;
  }

  /** What all machines take on a system. */
  heldOn(systemId: string): ClaimSpec[] {
    return this.#claims
      .byIndex("system", systemId)
      .map(({ spec }) => spec)
      .filter(isMachine);
  }

  /** Keepers on a system that hold disks for objects of a namespace, in a fixed order. */
  keepersFor(namespace: string, systemId: string): ClaimSpec[] {
    return this.#claims
      .byIndex("system", systemId)
      .map(({ spec }) => spec)
      .filter(({ role, state }) => role === "Keeper" && state !== "Quarantined")
      .filter(({ owner, installation }) => {
        return owner.namespace === namespace && installation === this.installation;
      })
      .toSorted((a, b) => (a.externalId < b.externalId ? -1 : 1));
  }

  /** The Claim of an id as the server has it now, whoever holds it. */
  async read(systemId: string, externalId: string): Promise<Claim | undefined> {
    return this.#read(claimName(systemId, externalId));
  }

  /**
   * The Claim that a VM holds. The id in its status names it, so that not even an old list can hide
   * it; without one it is found by the owner, as after an import.
   */
  async find(vm: VirtualMachine): Promise<Answer<Claim | undefined>> {
    const named = await this.#named(vm);
    if (named !== undefined) return answered(named);
    const key = objectKey(vm.metadata);
    for (const { metadata, spec } of this.#claims.byIndex("owner", key)) {
      // What lies here may be old: before a conflict is declared the server is asked.
      const claim = isMachine(spec) ? await this.#read(metadata.name ?? "") : undefined;
      if (claim !== undefined && isMachine(claim.spec)) return this.#rebound(claim, vm);
    }
    this.#grants.end(key);
    return answered(undefined);
  }

  /** Machines that this installation let go of, for an object of the same name on the system. */
  releasedBy({ owner, hypervisor, installation }: ClaimSpec): Claim[] {
    return this.#claims.byIndex("owner", objectKey(owner)).filter(({ spec }) => {
      const isHere = spec.hypervisor.systemId === hypervisor.systemId;
      const isOurs = spec.installation === installation && spec.role === "Machine";
      return spec.state === "Released" && spec.everStood && isHere && isOurs;
    });
  }

  /** How many ids its owner let go of before a machine ever stood there: what is left is empty. */
  husksOf({ owner, hypervisor, installation }: ClaimSpec): number {
    const all = this.#claims.byIndex("owner", objectKey(owner)).filter(({ spec }) => {
      const isHere = spec.hypervisor.systemId === hypervisor.systemId;
      const isIts = spec.owner.uid === owner.uid && spec.installation === installation;
      return spec.state === "Released" && !spec.everStood && isHere && isIts;
    });
    return all.filter(({ spec }) => spec.role === "Machine").length;
  }

  /** The Claim under which an id was let go, as the server has it now. */
  async releasedAs(systemId: string, externalId: string): Promise<Claim | undefined> {
    const there = await this.#read(claimName(systemId, externalId));
    return there?.spec.state === "Released" ? there : undefined;
  }

  /** What would be reserved, for whoever has to look before. */
  draft(reservation: Reservation): ClaimSpec {
    return this.#newClaim(reservation).spec;
  }

  /** The Claim of another object under the id that this one asks for, as the server has it now. */
  async holder({ hypervisor, externalId, owner }: ClaimSpec): Promise<Claim | undefined> {
    const there = await this.#read(claimName(hypervisor.systemId, externalId));
    if (there === undefined || !isHeld(there.spec)) return undefined;
    return there.spec.owner.uid === owner.uid ? undefined : there;
  }

  /** Reserves an id: by creating its Claim, or by taking over one that nobody lives in. */
  async reserve(reservation: Reservation): Promise<Reserved> {
    const claim = this.#newClaim(reservation);
    const reserved = await this.#reserve(claim);
    if (reserved.is === "ours") this.#grants.renew(reserved.claim);
    else if (claim.spec.role === "Machine") this.#grants.end(objectKey(claim.spec.owner));
    return reserved;
  }

  async #reserve(claim: Claim): Promise<Reserved> {
    try {
      return { is: "ours", claim: this.#claims.note(await this.#client.create(claim)) };
    } catch (error) {
      const isThere = error instanceof ApiError && error.code === 409;
      if (!isThere && !isOutcomeUnknown(error)) throw error;
      const there = await this.#read(claim.metadata.name ?? "");
      // Our own earlier try, whose reply was lost or which a crash cut off.
      if (there === undefined) throw error;
      if (isHeld(there.spec)) return isSame(there, claim) ? ours(there) : taken(there);
      if (!this.#isFree(there.spec)) return taken(there);
      return ours(await this.#update(there, claim.spec));
    }
  }

  /** Changes what is known of a machine. */
  async record(claim: Claim, change: Partial<ClaimSpec>): Promise<Claim> {
    return this.#update(claim, { ...claim.spec, ...change });
  }

  /** The object has nothing to do with its keeper any more. */
  async forgetKeeper(claim: Claim): Promise<Claim> {
    const { keeper: _keeper, ...spec } = claim.spec;
    return this.#update(claim, spec);
  }

  /** The machine is gone, proven. An id that Berth chose rests; a person's may be used at once. */
  async retire(claim: Claim): Promise<void> {
    if (claim.spec.idChosenBy === "User") return this.remove(claim);
    const untilMs = this.#options.clock.nowMs() + quarantineMs;
    const quarantineUntil = formatTime(untilMs);
    const { volumes: _volumes, keeper: _keeper, ...spec } = claim.spec;
    await this.#update(claim, { ...spec, state: "Quarantined", quarantineUntil });
  }

  /** The machine was let go and stays where it is. The Claim is kept: it says whose it was. */
  async release(claim: Claim, releaseReason: string): Promise<void> {
    const releasedAt = formatTime(this.#options.clock.nowMs());
    const { keeper: _keeper, ...spec } = claim.spec;
    await this.#update(claim, { ...spec, state: "Released", releasedAt, releaseReason });
  }

  /** Deletes this very version of a Claim. */
  async remove({ metadata, spec }: Claim): Promise<void> {
    const { name = "", uid = "", resourceVersion = "" } = metadata;
    try {
      await this.#client.delete({ name }, { preconditions: { uid, resourceVersion } });
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 404) throw error;
    }
    this.#claims.forget(name);
    if (spec.role === "Machine") this.#grants.end(objectKey(spec.owner));
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
    if (written?.[annotations.identity] !== claim.spec.identity) {
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
    const updated = this.#claims.note(await this.#client.update({ ...claim, spec }));
    this.#grants.renew(updated);
    return updated;
  }

  #isFree({ state, quarantineUntil = "" }: ClaimSpec): boolean {
    if (state === "Released") return true;
    return state === "Quarantined" && Date.parse(quarantineUntil) <= this.#options.clock.nowMs();
  }

  #newClaim(reservation: Reservation): Claim {
    const { vm, hypervisor, externalId, idChosenBy, identity, node, resources } = reservation;
    const { preflightVolumes, preflightNode, kept } = reservation;
    const { namespace = "", name = "", uid = "" } = vm.metadata;
    return {
      apiVersion,
      kind: "Claim",
      metadata: { name: claimName(hypervisor.systemId, externalId) },
      spec: {
        hypervisor,
        externalId,
        idChosenBy,
        state: "Reserved",
        role: "Machine",
        origin: "Created",
        everStood: false,
        identity,
        installation: this.#options.installation,
        owner: { namespace, name, uid },
        node,
        preflightVolumes: [...preflightVolumes],
        ...(preflightNode === undefined ? {} : { preflightNode }),
        resources,
        reservedAt: formatTime(this.#options.clock.nowMs()),
        ...kept,
      },
    };
  }
}

/** Somebody lives in it. */
export function isHeld({ state }: ClaimSpec): boolean {
  return state === "Reserved" || state === "Bound";
}

function isMachine(spec: ClaimSpec): boolean {
  return isHeld(spec) && spec.role === "Machine";
}

function isHolder(claim: Claim, vm: VirtualMachine): boolean {
  const { identity = claim.spec.identity } = vm.status ?? {};
  return isHeld(claim.spec) && isOwner(claim, vm) && claim.spec.identity === identity;
}

function isOwner({ spec }: Claim, { metadata }: VirtualMachine): boolean {
  return objectKey(spec.owner) === objectKey(metadata) && spec.owner.uid === metadata.uid;
}

function isSame(there: Claim, claim: Claim): boolean {
  const isOurs = there.spec.installation === claim.spec.installation;
  const isSameOwner = there.spec.owner.uid === claim.spec.owner.uid;
  return isOurs && isSameOwner && there.spec.identity === claim.spec.identity;
}

function ours(claim: Claim): Reserved {
  return { is: "ours", claim };
}

function taken(by: Claim): Reserved {
  return { is: "taken", by };
}

function strangersClaim(vm: VirtualMachine, { spec }: Claim): Parameters<typeof failed>[0] {
  const key = objectKey(vm.metadata);
  return {
    category: "IdentityConflict",
    message:
      `An earlier object ${key} left the machine ${spec.externalId} on ${spec.hypervisor.name}, ` +
      "and nothing proves that it belongs to this one.",
    remedy:
      `To give it to this object: kubectl annotate vm -n ${spec.owner.namespace} ` +
      `${spec.owner.name} ${annotations.identity}=${spec.identity}`,
  };
}
