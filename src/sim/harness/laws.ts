import type { ClaimSpec, Orphan, VirtualMachine } from "../../api/index.ts";
import type { PveRequest } from "../../drivers/proxmox/index.ts";
import { FileLaws, isDownload } from "./laws-files.ts";
import { aboutOf, demandSlots, workersOf } from "./laws-load.ts";
import type { Forgetting } from "./program.ts";
import { isReady } from "./readiness.ts";
import { isHeld, type Records } from "./records.ts";
import type { Origin, Site } from "./site.ts";
import { Violation } from "./violation.ts";
import { isCreate, nameOf, subjectOf } from "./wire.ts";

/** More changes for one object within so long are a storm, whatever goes wrong. */
const stormMs = 600_000;
/** Half as much again as the most in hundreds of histories. */
const stormMost = 24;
/** And so are more calls of one cluster, or of the API by one program, reads and all. */
const callsMs = 60_000;
const callLimits: CallLimits = { callsMost: 800, asksMost: 480 };
/**
 * Who remembers nothing lists all objects and connects again before its turns. Half as much again
 * as the most in a hundred such histories; turns that follow each other without a pause make more.
 */
const forgetfulLimits: CallLimits = { callsMost: 2_400, asksMost: 2_700 };
/** For how long a person's word that a disk may go counts: it may be undone while it is done. */
const wordMs = 300_000;

/** What was begun before an object lost its status may be sent for so long. */
const lostIntentMs = 60_000;
/** As long as a task takes at most. */
const lostSlotsMs = 10 * 60_000;

/** How often a cluster is called, and the API asked by one program, within a minute. */
interface CallLimits {
  readonly callsMost: number;
  readonly asksMost: number;
}

export function callLimitsOf(amnesia: Forgetting): CallLimits {
  return amnesia === "none" ? callLimits : forgetfulLimits;
}

/** Who sends something, and for how long the kinds have been going away. */
export interface Moment {
  readonly sender: string;
  readonly kindsGoMs: number;
}

/** The laws about what is on the hypervisors and what is sent there. Each throws a Violation. */
export class Laws {
  readonly #records: Records;
  readonly #sites: ReadonlyMap<string, Site>;
  readonly #nowMs: () => number;
  /** When something was sent for an object, by its uid. */
  readonly #sent = new Map<string, number[]>();
  /** Objects that were Ready once. */
  readonly #stood = new Set<string>();
  /** When the clusters were called, and the API by the programs, by their names. */
  readonly #called = new Map<string, number[]>();
  /** When a disk was last declared to go, by the object's uid and the disk's name. */
  readonly #words = new Map<string, number>();
  /** When an object lost its status with an open operation, by its uid. */
  readonly #lostMs = new Map<string, number>();
  readonly files: FileLaws;
  callLimits = callLimitsOf("none");
  /** Whether two lives have work under way: neither knows the slots of the other. */
  isShared: () => boolean = () => false;
  /** What other lives keep. */
  others: () => readonly Records[] = () => [];
  /** The open operation of an Orphan that a request belongs to; throws where it is not allowed. */
  orphanOf: (site: Site, request: PveRequest, what: () => string) => Orphan | undefined = () =>
    undefined;

  constructor(records: Records, sites: ReadonlyMap<string, Site>, nowMs: () => number) {
    this.#records = records;
    this.#sites = sites;
    this.#nowMs = nowMs;
    this.files = new FileLaws(records, nowMs);
  }

  /** Law 4: a machine that once stood goes only when its object is deleted, and says so. */
  whenGone(site: Site, id: string, { uid }: Origin): void {
    const claim = this.#records.claimOf(site.name, id)?.spec;
    if (claim?.role === "DiskHolder") return demandEmpty(site, claim);
    const vm = this.#vmOf(uid);
    if (claim?.everExisted !== true || claim.owner.uid !== uid || vm === undefined) return;
    const what = `the machine ${id} of ${vm.metadata.name} on ${site.name} was destroyed`;
    if (vm.metadata.deletionTimestamp === undefined) {
      throw new Violation(4, `${what}, and nobody deletes it`);
    }
    if (vm.spec.deletionPolicy === "Retain") throw new Violation(4, `${what}, and it is Retain`);
  }

  /** Law 4, of a disk: with its machine, or because it was declared to go. */
  whenVolumeGone(site: Site, name: string): void {
    for (const { spec } of this.#records.claims.values()) {
      if (spec.hypervisor.name !== site.name || !spec.everExisted) continue;
      const volume = spec.volumes?.find(({ id }) => id.endsWith(`:${name}`));
      const vm = this.#vmOf(spec.owner.uid);
      if (volume?.role !== "Disk" || vm === undefined) continue;
      this.#demandWord(vm, { ...volume, what: `the disk ${name} on ${site.name} was destroyed` });
    }
  }

  #demandWord(
    { metadata, spec }: VirtualMachine,
    volume: NonNullable<ClaimSpec["volumes"]>[number] & { readonly what: string },
  ): void {
    const { what, disk = "", onDelete } = volume;
    if (onDelete === "Retain") throw new Violation(4, `${what}, and it is Retain`);
    if (metadata.deletionTimestamp !== undefined) {
      if (spec.deletionPolicy === "Retain") throw new Violation(4, `${what}, and all is Retain`);
      return;
    }
    const saidMs = this.#words.get(`${metadata.uid}/${disk}`) ?? -Infinity;
    if (saidMs >= this.#nowMs() - wordMs) return;
    throw new Violation(4, `${what}, and ${metadata.name} does not say so`);
  }

  /** Remembers which machines stood, and which disks are declared to go. */
  hear(vm: VirtualMachine): void {
    const { metadata, spec } = vm;
    if (isReady(vm)) this.#stood.add(metadata.uid ?? "");
    for (const { name, state } of spec.disks ?? []) {
      if (state === "Absent") this.#words.set(`${metadata.uid}/${name}`, this.#nowMs());
    }
  }

  /** Somebody took the status away: what was begun by then had its intent. */
  loseStatus({ metadata, status }: VirtualMachine): void {
    if (status?.operation !== undefined) this.#lostMs.set(metadata.uid ?? "", this.#nowMs());
  }

  /** Laws 3, 4, 5 and 6: whose it is and what for is on the disk, and who sends it leads. */
  beforeEffect(site: Site, request: PveRequest, { sender, kindsGoMs }: Moment): void {
    if (isDownload(request)) this.files.beforeDownload(site, request);
    const id = subjectOf(request);
    if (id === undefined) return;
    const what = (): string => `${nameOf(request)} on ${site.name} was sent`;
    const leader = this.#records.leader() ?? "nobody";
    if (!leader.startsWith(`${sender}_`)) {
      throw new Violation(5, `${what()} by ${sender}, and ${leader} leads`);
    }
    const owner = this.#demandIntent(site, request, what);
    // A keeper that gave its disk back is empty, and goes whatever becomes of the kinds.
    demandGentle(request, this.#isKeeper(site, id) ? 0 : kindsGoMs, what);
    demandOwn(request, site.guests.get(id), what);
    demandNamed(request, this.#records.claimOf(site.name, id)?.spec, what);
    if (isCreate(request)) {
      if (!this.#isKeeper(site, id)) this.#demandWish(owner, what);
      site.creates.set(id, owner.uid ?? "");
    }
    this.#demandCalm(owner, what);
  }

  #demandIntent(site: Site, request: PveRequest, what: () => string): ClaimSpec["owner"] {
    const id = subjectOf(request) ?? "";
    const owner = this.#holderOf(site, id);
    if (owner !== undefined && this.#hasIntent(owner)) return owner;
    const orphan = this.orphanOf(site, request, what);
    if (orphan !== undefined) {
      const { name = "", uid } = orphan.metadata;
      return { namespace: "", name, ...(uid === undefined ? {} : { uid }) };
    }
    if (owner === undefined) throw new Violation(5, `${what()} without a Claim of ${id}`);
    throw new Violation(5, `${what()} without an intent of ${owner.name}`);
  }

  /** Law 4: what stood is not made anew, unless that is declared: its data are gone. */
  #demandWish({ namespace, name, uid }: ClaimSpec["owner"], what: () => string): void {
    const vm = this.#records.vms.get(`${namespace}/${name}`);
    if (!this.#stood.has(uid ?? "") || vm?.spec.onMissing === "Recreate") return;
    throw new Violation(4, `${what()}, which makes ${name} anew, and nobody asked for that`);
  }

  #demandCalm({ uid = "", name }: ClaimSpec["owner"], what: () => string): void {
    const sent = this.#noteIn(this.#sent, uid, stormMs);
    if (sent <= stormMost) return;
    throw new Violation(6, `${what()}, the ${sent}th for ${name} in ten minutes`);
  }

  /** Law 6: a cluster is asked only so often. */
  atCall({ name }: Site): void {
    const calls = this.#noteIn(this.#called, name, callsMs);
    if (calls > this.callLimits.callsMost)
      throw new Violation(6, `${name} was called ${calls} times in a minute`);
  }

  /** Law 6: and a program asks the API only so often. */
  atAsk(program: string): void {
    const asks = this.#noteIn(this.#called, program, callsMs);
    if (asks > this.callLimits.asksMost)
      throw new Violation(6, `${program} asked ${asks} times in a minute`);
  }

  /** Counts what happened within so long, with what happens now. */
  #noteIn(times: Map<string, number[]>, key: string, withinMs: number): number {
    const nowMs = this.#nowMs();
    const noted = times.get(key) ?? [];
    noted.push(nowMs);
    times.set(key, noted);
    while ((noted[0] ?? nowMs) <= nowMs - withinMs) noted.shift();
    return noted.length;
  }

  #isKeeper(site: Site, id: string): boolean {
    const all = [this.#records, ...this.others()];
    return all.some((records) => records.claimOf(site.name, id)?.spec.role === "DiskHolder");
  }

  #vmOf(uid: string | undefined): VirtualMachine | undefined {
    if (uid === undefined) return undefined;
    for (const vm of this.#records.vms.values()) if (vm.metadata.uid === uid) return vm;
    return undefined;
  }

  #holderOf(site: Site, id: string): ClaimSpec["owner"] | undefined {
    const claim = this.#records.claimOf(site.name, id)?.spec;
    // While it is Pending nothing may be sent.
    const isHolder = claim !== undefined && isHeld(claim) && claim.preflight !== "Pending";
    return isHolder ? claim.owner : undefined;
  }

  #hasIntent({ namespace, name, uid }: ClaimSpec["owner"]): boolean {
    const vm = this.#records.vms.get(`${namespace}/${name}`);
    if (vm === undefined || vm.metadata.uid !== uid) return false;
    const lostMs = this.#lostMs.get(uid ?? "") ?? -Infinity;
    return vm.status?.operation !== undefined || lostMs > this.#nowMs() - lostIntentMs;
  }

  /** Laws 1, 3 and 6, after every event that changed something on a cluster. */
  atEveryEvent(): void {
    let isChanged = false;
    for (const site of this.#sites.values()) {
      if (!site.survey()) continue;
      isChanged = true;
      if (!this.isShared()) this.#demandSlots(site);
    }
    if (isChanged) this.#demandOneEach();
  }

  #demandSlots({ name, model, tokenId: user }: Site): void {
    const { processes, state } = model.cluster;
    const limits = this.#records.hypervisors.get(name)?.spec;
    if (limits === undefined) return;
    const tasks = state.nodes.flatMap((node) => node.tasks);
    const nowMs = model.cluster.clock.nowMs();
    const workers = workersOf(processes.list(), { tasks, user, nowMs });
    const counted = workers.filter(({ name: work }) => !this.#isForgotten(name, work));
    demandSlots(name, counted, { limits, volumes: state.volumes });
  }

  /** Which slots a task has is in the status of its VM. Without it laws 1 to 4 hold. */
  #isForgotten(site: string, work: string): boolean {
    const { uid = "" } = this.#records.claimOf(site, aboutOf(work))?.spec.owner ?? {};
    return (this.#lostMs.get(uid) ?? -Infinity) > this.#nowMs() - lostSlotsMs;
  }

  #demandOneEach(): void {
    const machines = new Map<string, readonly [id: string, site: Site]>();
    for (const site of this.#sites.values()) {
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
}

/** A keeper goes only when it keeps nothing any more. */
function demandEmpty({ name }: Site, { externalId, volumes = [] }: ClaimSpec): void {
  if (!volumes.some(({ onDelete }) => onDelete === "Retain")) return;
  throw new Violation(4, `the keeper ${externalId} on ${name} was destroyed with what it keeps`);
}

/** No lock is passed, and nothing is destroyed because its kind goes away. */
function demandGentle(request: PveRequest, kindsGoMs: number, what: () => string): void {
  if ("skiplock" in (request.params ?? {})) throw new Violation(3, `${what()} past a lock`);
  // What was decided before they went takes a moment to be sent.
  if (isDestroy(request) && kindsGoMs > 5_000) {
    throw new Violation(4, `${what()} while the kinds go away`);
  }
}

/** What the server does not guard by a version is never sent to what somebody else made. */
function demandOwn(request: PveRequest, guest: Origin | undefined, what: () => string): void {
  const isGuarded = isCreate(request) || "digest" in (request.params ?? {});
  const isMachine = /\/qemu\/\d+/.test(request.path);
  if (isGuarded || !isMachine || guest?.by !== "person") return;
  throw new Violation(3, `${what()}, and what stands there is somebody else's`);
}

/** Law 5: the name of a volume is in the Claim before the volume is asked for. */
function demandNamed(request: PveRequest, claim: ClaimSpec | undefined, what: () => string): void {
  const { method, path, params } = request;
  if (method !== "POST" || !path.endsWith("/content")) return;
  const { volume = "", settledAt } = claim?.allocation ?? {};
  const isNamed = volume.endsWith(String(params?.["filename"])) && settledAt === undefined;
  if (!isNamed) throw new Violation(5, `${what()}, and the Claim does not have its name`);
}

export function isDestroy({ method, path }: PveRequest): boolean {
  return method === "DELETE" && /\/qemu\/\d+$/.test(path);
}
