import type { Claim, Orphan, VirtualMachine } from "../../api/index.ts";
import { decode } from "../../apiserver/index.ts";
import type { PveRequest } from "../../drivers/proxmox/index.ts";
import type { Change } from "../../store/index.ts";
import { isDestroy } from "./laws.ts";
import { isHeld, type ObjectChange, type Records } from "./records.ts";
import { isStatusLost } from "./lost-status.ts";
import type { GuestVolume, Site } from "./site.ts";
import { Violation } from "./violation.ts";
import { subjectOf } from "./wire.ts";

/** What was chosen before something looked suspicious may be on its way for so long. */
const choiceMs = 60_000;
/** How old the last look at a machine's power may be when its destruction is sent. */
const powerMs = 120_000;

export interface OrphanLawsOptions {
  readonly records: Records;
  readonly sites: ReadonlyMap<string, Site>;
  readonly nowMs: () => number;
}

type Operation = NonNullable<NonNullable<Orphan["status"]>["operation"]>;

/**
 * The laws of the clean-up. What nothing declares is destroyed because a person decided so, or
 * because the policy says so and it is provably Berth's own: made in this history for an object
 * that is gone, known to a Claim of that object, off, and not kept by anybody.
 */
export class OrphanLaws {
  readonly #options: OrphanLawsOptions;
  /** Names of objects from which people took the finalizer, by uid: their machines stay behind. */
  readonly stripped = new Map<string, string>();
  /** Claims that people deleted, by name. */
  readonly lostClaims = new Set<string>();
  /** Every object that was ever declared, by uid. */
  readonly #declared = new Set<string>();
  /** What people said is to be kept, by its place: the very thing, whatever Orphan tells of it. */
  readonly #kept = new Map<string, object>();
  /** What was under way when somebody took an Orphan's status away, by uid. */
  readonly #lost = new Map<string, number>();
  /** When Berth last said that suddenly much less is there, by hypervisor. */
  readonly #suspicious = new Map<string, number>();

  constructor(options: OrphanLawsOptions) {
    this.#options = options;
  }

  hear({ metadata }: VirtualMachine): void {
    this.#declared.add(metadata.uid ?? "");
  }

  /** Whether an object goes without its machine because people made it go. */
  isStripped({ before, after }: ObjectChange<VirtualMachine>): boolean {
    return after === undefined && this.stripped.has(before?.metadata.uid ?? "");
  }

  /** Whether an object of this name went without its machine, which still stands or is held. */
  isLeftBehind(name: string): boolean {
    const { records, sites } = this.#options;
    const claims = [...records.claims.values()].filter(({ spec }) => isHeld(spec));
    const guests = [...sites.values()].flatMap((site) => [...site.guests.values()]);
    const uids = [...claims.map(({ spec }) => spec.owner.uid), ...guests.map(({ uid }) => uid)];
    return uids.some((uid = "") => this.stripped.get(uid) === name);
  }

  isLost({ before, after }: ObjectChange<Claim>): boolean {
    return after === undefined && this.lostClaims.has(before?.metadata.name ?? "");
  }

  /** Remembers what Berth itself found suspicious: also who starts anew has to know it. */
  atChange({ bucket, type, entry }: Change): void {
    if (bucket !== "core/events" || type === "delete") return;
    // cast: the API wrote it under this name.
    const event = decode(entry) as unknown as SuspicionEvent;
    if (event.reason !== "SuspiciousSweep") return;
    const atMs = Date.parse(event.lastTimestamp ?? event.eventTime ?? "");
    if (!Number.isNaN(atMs)) this.#suspicious.set(event.involvedObject.name, atMs);
  }

  /** Laws 4 and 5, at every change of an Orphan. */
  atOrphanChange({ before, after }: ObjectChange<Orphan>): void {
    if (after === undefined) return;
    this.#noteLost({ before, after });
    this.#hearDecision(before, after);
    const { operation } = after.status ?? {};
    if (operation === undefined || operation.id === before?.status?.operation?.id) return;
    if (operation.step === "Destroy") this.#demandAllowed(after, operation);
    else if (after.spec.decision !== "Adopt") {
      throw new Violation(5, `${tell(after)} is let go, and nobody decided that`);
    }
  }

  #noteLost(change: ObjectChange<Orphan>): void {
    const { before } = change;
    if (before?.status?.operation === undefined || !isStatusLost(change)) return;
    this.#lost.set(before.metadata.uid ?? "", this.#options.nowMs());
  }

  /** A person's word counts for the thing, until a person says something else. */
  #hearDecision(before: Orphan | undefined, after: Orphan): void {
    const key = keyOf(after);
    const { decision } = after.spec;
    if (decision === "Keep") {
      const thing = this.#thingOf(after);
      if (before?.spec.decision !== "Keep" && thing !== undefined) this.#kept.set(key, thing);
    } else if (before !== undefined && before.spec.decision !== decision) this.#kept.delete(key);
  }

  /** A person deletes an Orphan object, and with it what was decided. */
  forget(orphan: Orphan): void {
    this.#kept.delete(keyOf(orphan));
  }

  #demandAllowed(orphan: Orphan, { intent }: Operation): void {
    const { decision, hypervisor } = orphan.spec;
    const what = `${tell(orphan)} is to be destroyed (${intent})`;
    if (decision === "Destroy") return this.#giveUp(orphan);
    if (decision !== undefined) throw new Violation(4, `${what}, and a person said ${decision}`);
    const { policy, graceSeconds = 0 } =
      this.#options.records.hypervisors.get(hypervisor)?.spec.orphans ?? {};
    if (policy !== "DeleteOwned") throw new Violation(5, `${what}, and nobody decided that`);
    const kept = this.#kept.get(keyOf(orphan));
    if (kept !== undefined && kept === this.#thingOf(orphan)) {
      throw new Violation(4, `${what}, and a person said Keep`);
    }
    this.#demandUnsuspicious(hypervisor, graceSeconds, what);
    this.#demandOurs(orphan, what);
  }

  #demandUnsuspicious(hypervisor: string, graceSeconds: number, what: string): void {
    const sinceMs = this.#options.nowMs() - (this.#suspicious.get(hypervisor) ?? -Infinity);
    if (sinceMs <= choiceMs || sinceMs >= graceSeconds * 1000) return;
    const ago = `${Math.round(sinceMs / 1000)} s`;
    throw new Violation(4, `${what}, and much less was there than before ${ago} ago`);
  }

  #demandOurs(orphan: Orphan, what: string): void {
    const { kind, externalId } = orphan.spec;
    const site = this.#siteOf(orphan);
    if (kind === "Machine") return this.#demandMachine(site, externalId, what);
    if (kind === "Volume") return this.#demandVolume(site, orphan, what);
    if (kind !== "ISO") throw new Violation(5, `${what}, and nobody decided that`);
    for (const [id, { by }] of site.guests) {
      if (by !== "berth" || !site.isRunning(id)) continue;
      if (site.text(id)?.includes(externalId) !== true) continue;
      throw new Violation(4, `${what}, and ${id}, which runs, has it in its drive`);
    }
  }

  /** A stranger's machine is guarded where the request is sent: see law 3. */
  #demandMachine(site: Site, id: string, what: string): void {
    const guest = site.guests.get(id);
    if (guest?.by !== "berth") return;
    if (this.#isLiving(guest.uid)) throw new Violation(4, `${what}, and its object is there`);
    const claim = this.#options.records.claimOf(site.name, id)?.spec;
    if (claim !== undefined && isHeld(claim) && claim.owner.uid === guest.uid) return;
    throw new Violation(4, `${what}, and nothing but its mark says that it is ours`);
  }

  #demandVolume(site: Site, orphan: Orphan, what: string): void {
    const { externalId } = orphan.spec;
    const claims = [...this.#options.records.claims.values()].map(({ spec }) => spec);
    const isNamed = claims.some((spec) => {
      const isHere = spec.hypervisor.name === site.name && isHeld(spec);
      const isIts = spec.volumes?.some(({ id }) => id === externalId) === true;
      const { uid = "" } = spec.owner;
      return isHere && isIts && this.#declared.has(uid) && !this.#isLiving(uid);
    });
    this.#demandNotKeptWithIt(orphan, what);
    if (!isNamed) throw new Violation(4, `${what}, and no Claim of a gone object names it`);
    const origin = site.volumes.get(this.#volumeOf(orphan)?.key ?? "");
    if (origin?.by === "berth" && this.#isLiving(origin.uid)) {
      throw new Violation(4, `${what}, and its object is there`);
    }
  }

  /** With a machine that a person keeps its disks are kept, also where it lost them. */
  #demandNotKeptWithIt({ spec, status }: Orphan, what: string): void {
    for (const other of this.#options.records.orphans.values()) {
      const isHere = other.spec.hypervisor === spec.hypervisor && other.spec.kind === "Machine";
      const isIts = other.status?.claim !== undefined && other.status.claim === status?.claim;
      if (!isHere || !isIts || other.spec.decision !== "Keep") continue;
      throw new Violation(4, `${what}, and a person keeps its machine`);
    }
  }

  /** Whoever owned a volume, a person decided about it: it may go, and may stay. */
  #giveUp(orphan: Orphan): void {
    const volume = this.#volumeOf(orphan);
    if (volume === undefined) return;
    this.#siteOf(orphan).volumes.set(volume.key, { by: "nobody", uid: undefined });
  }

  /** Laws 4 and 5: the Orphan whose open operation a request belongs to, if there is one. */
  intentOf(site: Site, request: PveRequest, what: () => string): Orphan | undefined {
    const orphan = this.#actingOn(site, request);
    if (orphan?.spec.kind !== "Machine") return orphan;
    const { externalId } = orphan.spec;
    const claim = this.#options.records.claimOf(site.name, externalId)?.spec;
    if (claim === undefined || !isHeld(claim)) {
      throw new Violation(5, `${what()} without a Claim of ${externalId}`);
    }
    if (!isDestroy(request)) return orphan;
    if (orphan.status?.operation?.step !== "Destroy") return undefined;
    demandOff(site, externalId, what);
    return orphan;
  }

  #actingOn({ name }: Site, request: PveRequest): Orphan | undefined {
    const id = subjectOf(request);
    const path = decodeURIComponent(request.path);
    return [...this.#options.records.orphans.values()].find((orphan) => {
      const { hypervisor, kind, externalId } = orphan.spec;
      if (hypervisor !== name || !this.#hasIntent(orphan)) return false;
      const isMachine = (kind === "Machine" || kind === "Husk") && externalId === id;
      return isMachine || (kind === "Volume" && path.endsWith(externalId));
    });
  }

  #hasIntent({ metadata, status }: Orphan): boolean {
    const lostMs = this.#lost.get(metadata.uid ?? "") ?? -Infinity;
    return status?.operation !== undefined || lostMs > this.#options.nowMs() - choiceMs;
  }

  /** Whether an Orphan tells of what an id is held for, while its object is gone. */
  isTold({ metadata, spec }: Claim): boolean {
    const ofIt = new RegExp(`(^|vm-)${spec.externalId}($|-)`);
    return [...this.#options.records.orphans.values()].some((orphan) => {
      if (orphan.spec.hypervisor !== spec.hypervisor.name) return false;
      return orphan.status?.claim === metadata.name || ofIt.test(orphan.spec.externalId);
    });
  }

  #isLiving(uid: string | undefined): boolean {
    return [...this.#options.records.vms.values()].some(({ metadata }) => metadata.uid === uid);
  }

  /** The very thing: what is made later under its name is another. */
  #thingOf(orphan: Orphan): object | undefined {
    const { kind, externalId } = orphan.spec;
    if (kind === "Machine") return this.#siteOf(orphan).guests.get(externalId);
    return this.#volumeOf(orphan)?.volume;
  }

  #volumeOf(orphan: Orphan): GuestVolume | undefined {
    const { kind, externalId } = orphan.spec;
    if (kind !== "Volume") return undefined;
    const node = orphan.status?.node ?? "";
    return [...this.#siteOf(orphan).guestVolumes()].find(({ backing, name }) => {
      const isHere = backing.startsWith(`${node}:`) || backing.startsWith("shared:");
      return isHere && externalId.endsWith(`:${name}`);
    });
  }

  #siteOf({ spec }: Orphan): Site {
    const site = this.#options.sites.get(spec.hypervisor);
    if (site === undefined) throw new Error(`there is no ${spec.hypervisor}`);
    return site;
  }
}

/** Law 4: what is destroyed for an Orphan is off. */
function demandOff(site: Site, id: string, what: () => string): void {
  const isOn = site.guests.get(id)?.by === "berth" && site.isRunning(id);
  if (!isOn || site.hadPowerWithin(id, "Stopped", powerMs)) return;
  throw new Violation(4, `${what()}, and the machine runs`);
}

interface SuspicionEvent {
  readonly reason?: string;
  readonly lastTimestamp?: string;
  readonly eventTime?: string;
  readonly involvedObject: { readonly name: string };
}

function keyOf({ spec }: Orphan): string {
  return `${spec.hypervisor} ${spec.kind} ${spec.externalId}`;
}

function tell({ spec }: Orphan): string {
  return `the ${spec.kind} ${spec.externalId} on ${spec.hypervisor}`;
}
