import { annotations } from "../../api/index.ts";
import type { VirtualMachine } from "../../api/index.ts";
import type { Hands } from "./hands.ts";
import { forgetUnused } from "./hands-disks.ts";
import type { People } from "./people.ts";
import type { Site } from "./site.ts";
import { isProvable } from "./provable.ts";
import { mayWait } from "./readiness.ts";
import { isPassing } from "./shape.ts";
import { Violation } from "./violation.ts";
import type { World } from "./world.ts";

export interface Helpers {
  readonly world: World;
  readonly people: People;
  readonly hands: Hands;
}

/** A machine that is stuck, and where. */
interface Stuck {
  readonly vm: VirtualMachine;
  readonly name: string;
  readonly id: string;
  readonly site: Site;
  readonly message: string;
}

/** What its failure asks of a person, or what is not true of it. */
type Answer = (() => void) | string;

const remedies: Readonly<Record<string, (stuck: Stuck, helpers: Helpers) => Answer>> = {
  Missing: (stuck, helpers) => {
    const { site, id, name, message } = stuck;
    const { people, hands, world } = helpers;
    // A copy of the installation recreated the VM and did not get to its disk.
    const isUnfinished = world.copies.length > 0 && /^The disk \S+ was/.test(message);
    if (isUnfinished) return () => hands.clear(site, id);
    const disk = answerLost(stuck, helpers) ?? answerGone(stuck, helpers);
    if (disk !== undefined) return disk;
    if (site.guests.get(id)?.by === "berth") return `${id} is there`;
    return () => people.change(name, { spec: { onMissing: "Recreate" } });
  },
  IdentityConflict: answerConflict,
  LockError: ({ site, id }, { hands }) => {
    if (site.value(id, "lock") === undefined) return `${id} has no lock`;
    // An empty reservation is of no use to anybody; a machine is.
    const isEmpty = site.value(id, "name") === undefined;
    return () => (isEmpty ? hands.clear(site, id) : hands.clearLock(site, id));
  },
  OrphanedVolumes: (stuck, helpers) => {
    const { site, id, message } = stuck;
    const { hands, people } = helpers;
    const saved = /cannot be suspended today: .*(vm-\d+-state-suspend-[\d-]+)/.exec(message)?.[1];
    if (saved !== undefined) return answerSaved(stuck, helpers, saved);
    // Somebody removed them, and says so.
    if (message.includes("suddenly not listed any more")) return () => people.retryAll();
    // Somebody took the machine away, with the disk that was to be handed over.
    const lost = /:(\S+) left its machine .* nowhere to be found/.exec(message)?.[1];
    const isThere = [...site.guestVolumes()].some(({ vmid, name: volume }) => {
      return lost === undefined ? vmid === id : volume === lost;
    });
    if (lost !== undefined) return isThere ? `${lost} is there` : () => people.retryAll();
    return isThere ? () => hands.clear(site, id) : `there is no volume of ${id}`;
  },
  ReplacementRequired: declareSizes,
  ConfigurationError: (stuck, helpers) => {
    const { site, id, message } = stuck;
    if (!/HA managed|High availability/.test(message)) return declareSizes(stuck, helpers);
    const isWatched = site.model.cluster.state.ha[`vm:${id}`] !== undefined;
    return isWatched ? () => helpers.hands.letGo(site, id) : `nothing watches over ${id}`;
  },
  CreationFailed: (stuck, helpers) => {
    const { site, name, message } = stuck;
    const taken = /(vm-\d+-state-suspend-[\d-]+).* already exists/.exec(message)?.[1];
    if (taken !== undefined) return answerSaved(stuck, helpers, taken);
    // Its own disk is gone: of that machine nothing can be made any more.
    const lost = /volume '[^:']+:([^']+)' does not exist/.exec(message)?.[1];
    const isThere = [...site.guestVolumes()].some((volume) => volume.name === lost);
    if (lost === undefined || isThere) return "no disk of it is lost";
    return () => helpers.people.delete(name);
  },
};

const lostDisk = /^The disk \S+ was .*: (\w+) is empty, .* its volume [^:\s]+:(\S+)/;

/** A disk left its place: whoever put it into another one, under another name, puts it back. */
function answerLost(stuck: Stuck, { hands, people }: Helpers): Answer | undefined {
  const { site, id, name, message } = stuck;
  const [isSaid, slot = "", volume = ""] = lostDisk.exec(message) ?? [];
  if (isSaid === undefined) return undefined;
  if (site.value(id, slot) !== undefined) return `${slot} is not empty`;
  if ((site.text(id) ?? "").includes(`:${volume}`)) return `${id} has ${volume}`;
  const away = ["scsi8", "scsi9"].find((one) => isBerths(stuck, site.value(id, one) ?? ""));
  // It is no more: so is what the VM was made for.
  if (away === undefined) return () => people.delete(name);
  if (!message.includes(`${away} (`)) return `${away} has it`;
  return () => hands.moveSlot({ site, id }, away, slot);
}

/** Somebody removed the volume of a disk: so is what the VM was made for. */
function answerGone({ site, name, message }: Stuck, { people }: Helpers): Answer | undefined {
  const lost = /its volume [^:\s]+:(\S+) no longer exists/.exec(message)?.[1];
  if (lost === undefined) return undefined;
  const isThere = [...site.guestVolumes()].some((volume) => volume.name === lost);
  return isThere ? `${lost} is there` : () => people.delete(name);
}

/** Whether a disk of a machine is one that Berth made, whatever it is called. */
function isBerths({ site, id }: Stuck, line: string): boolean {
  const name = /^[^:]+:([^,]+)/.exec(line)?.[1];
  return [...site.guestVolumes()].some((volume) => {
    const isIt = volume.vmid === id && volume.name === name;
    return isIt && site.volumes.get(volume.key)?.by === "berth";
  });
}

/** Memory that a suspend saved has the name of the next one, and nothing proves that it is ours. */
function answerSaved({ site, id }: Stuck, { world, hands }: Helpers, taken: string): Answer {
  const volume = [...site.guestVolumes()].find(({ name }) => name.includes(taken));
  if (volume === undefined) return `nothing is called ${taken}`;
  const claim = world.records.claimOf(site.name, id)?.spec ?? {};
  if (isProvable(claim, volume)) return `${taken} is Berth's to remove`;
  return () => hands.removeVolume(site, volume.name);
}

function answerConflict(stuck: Stuck, helpers: Helpers): Answer {
  const { site, id, name, message } = stuck;
  const { world, people } = helpers;
  // Two objects chose the same id: only one of them can have it.
  const claim = world.records.claimOf(site.name, id)?.spec;
  if (claim !== undefined && claim.owner.name !== name) return () => people.delete(name);
  // It was so when it was said; if Berth goes on saying it, no remedy helps.
  const volume = answerFollowed(stuck, helpers) ?? answerVolume(stuck, helpers);
  if (volume !== undefined) return volume;
  const wasTaken = claim === undefined && message.includes(`The id ${id} belongs to`);
  if (wasTaken) return () => people.retryAll();
  return answerTaken(stuck, helpers, claim?.state === "Released");
}

/** A disk is to be destroyed that somebody renamed: Berth leaves that to a person. */
function answerFollowed(stuck: Stuck, { hands }: Helpers): Answer | undefined {
  const { site, id, message } = stuck;
  const named = /Berth does not destroy its volume [^:\s]+:(\S+): /.exec(message)?.[1];
  if (named === undefined) return undefined;
  const isThere = [...site.guestVolumes()].some((volume) => volume.name === named);
  if (!isThere) return `${named} is not there`;
  return () => {
    forgetUnused({ site, id }, named);
    hands.removeVolume(site, named);
  };
}

const misplaced =
  /(?:in the place of the disk \S+ \(|of the disk \S+ as |attached to this VM already, as )(\w+)/;
const usedAgain = /uses its name for another one|is not the one that was recorded/;

/** A volume that is not Berth's is in a slot of its disks, or a disk of Berth's in another one. */
function answerVolume(stuck: Stuck, { hands, people }: Helpers): Answer | undefined {
  const { vm, site, id, name, message } = stuck;
  // Nobody can take a disk off a VM that is suspended to disk: it is locked.
  const isAsleep = misplaced.test(message) && site.value(id, "lock") === "suspended";
  if (usedAgain.test(message) || isAsleep) {
    // Berth never destroys the volume: people take it away, and the VM with it.
    const isGoing = vm.metadata.deletionTimestamp !== undefined;
    return () => (isGoing ? hands.clear(site, id) : people.delete(name));
  }
  const slot = misplaced.exec(message)?.[1];
  if (slot === undefined) return undefined;
  if (site.value(id, slot) === undefined) return `${slot} of ${id} is empty`;
  return () => hands.moveSlot({ site, id }, slot);
}

/** Somebody else's machine has the id; or one of the same name let it go before it was whole. */
function answerTaken({ site, id, message }: Stuck, { hands }: Helpers, isLetGo: boolean): Answer {
  const other = whoElse(message) ?? id;
  const isTaken = (isLetGo && other === id) || isPersons(site, other);
  if (!isTaken || site.text(other) === undefined) return `nobody else has ${other}`;
  return () => hands.clear(site, other);
}

function isPersons(site: Site, id: string): boolean {
  return site.guests.get(id)?.by === "person";
}

/** A copy of its file that refers to its disks, or whoever has the id of its keeper. */
function whoElse(message: string): string | undefined {
  return /(?:VM (?=\d+ uses the volume)|The keeper )(\d+)/.exec(message)?.[1];
}

/** Disks may have grown by hand, or since a machine was let go of: then they are declared so. */
function declareSizes({ vm, site, id, name, message }: Stuck, { people }: Helpers): Answer {
  const found = new Map(
    [...message.matchAll(/disks\[(\w+)\]\.size \(it has (\w+)\)/g)].map(
      ([, disk = "", size = ""]) => [disk, size],
    ),
  );
  const config = site.text(/machine (\d+) stands/.exec(message)?.[1] ?? id) ?? "";
  const isFalse = (size: string): boolean => !config.includes(`size=${size.replace("i", "")}`);
  if (found.size === 0 || [...found.values()].some(isFalse)) return "its disks are not so";
  const disks = vm.spec.disks?.map((disk) => ({
    ...disk,
    size: found.get(disk.name) ?? disk.size,
  }));
  return () => people.change(name, { spec: { disks } });
}

/**
 * Does for machines that are stuck what their failures ask of a person. First each has to be true:
 * what the failure says must be so on the hypervisor, and it must be something that Berth may not
 * mend. All are judged before anybody acts, because several may be stuck on the same thing.
 */
export function remedyAll(stuck: readonly VirtualMachine[], helpers: Helpers): void {
  const acts = stuck.map((vm) => remedyOf(vm, helpers));
  for (const act of acts) act();
}

/**
 * Does what a wait for a lock asks of a person: its task was forgotten, so nothing tells Berth that
 * it ended. Answers whether anything was done. Where somebody still works, the lock stays.
 */
export function unlockWaiting(vms: readonly VirtualMachine[], { world, hands }: Helpers): boolean {
  const forgotten = vms.flatMap((vm) => {
    const { kind, name = "" } = vm.status?.waitingFor ?? {};
    const { site, id } = placeOf(vm, world);
    const isAsked = kind === "Lock" && name.endsWith(`qm unlock ${id}`);
    const isLocked = site.value(id, "lock") !== undefined && !site.isWorkedOn(id);
    return isAsked && isLocked ? [{ site, id }] : [];
  });
  for (const { site, id } of forgotten) hands.clearLock(site, id);
  return forgotten.length > 0;
}

function remedyOf(vm: VirtualMachine, helpers: Helpers): () => void {
  const { failure, plan } = vm.status ?? {};
  const name = vm.metadata.name ?? "";
  if (plan !== undefined) {
    const approved = { annotations: { [annotations.approve]: plan.hash } };
    return () => helpers.people.change(name, { metadata: approved });
  }
  const remedy = remedies[failure?.category ?? ""];
  if (failure === undefined || remedy === undefined) {
    throw new Violation(8, `${name} stalls: ${JSON.stringify(vm.status)}`);
  }
  const { category, message } = failure;
  const answer = remedy({ vm, name, message, ...placeOf(vm, helpers.world) }, helpers);
  if (typeof answer !== "string") return answer;
  throw new Violation(7, `${name} says ${category} (${message}), but ${answer}`);
}

function placeOf(
  { spec, status = {} }: VirtualMachine,
  { sites }: World,
): Pick<Stuck, "id" | "site"> {
  const { externalId = spec.externalId, hypervisor = spec.hypervisorRef.name } = status;
  const site = sites.get(hypervisor);
  if (site === undefined) throw new Violation(8, `there is no ${hypervisor}`);
  return { id: externalId ?? "", site };
}

/** Of what was refused Berth says itself when it is tried again: until then, at the longest. */
export function toldWaitMs(vms: readonly VirtualMachine[], nowMs: number): number {
  const times = vms.flatMap(({ status }) => status?.failure?.nextRetryAt ?? []);
  return Math.max(0, ...times.map((time) => Date.parse(time) - nowMs));
}

/** Law 8: reality is the spec. Read from the hypervisor's own files, not from what Berth saw. */
export function demandSpec(vm: VirtualMachine, world: World): void {
  const { site, id } = placeOf(vm, world);
  const name = vm.metadata.name ?? "";
  if (vm.status?.hypervisor === undefined || vm.status.externalId === undefined) {
    throw new Violation(9, `${name} is Ready, and does not say where its VM is`);
  }
  const text = withoutCopied(vm, site.text(id) ?? "", world);
  for (const { field, wanted, there } of pairsOf(vm, { site, id, text })) {
    if (wanted === there) continue;
    throw new Violation(8, `${name} wants ${field} ${wanted}, and ${id} has ${there ?? "none"}`);
  }
}

/**
 * A disk or NIC that only the spec of a copy of the installation declared stays where the copy
 * acted, and so does what a VM had that was taken over: Berth reports what its own spec never
 * named, and does not detach it.
 */
function withoutCopied({ metadata, status }: VirtualMachine, text: string, world: World): string {
  const { hypervisor = "", externalId = "", undeclared = [] } = status ?? {};
  const isTakenOver = world.sites.get(hypervisor)?.creates.get(externalId) !== metadata.uid;
  if (world.copies.length === 0 && !isTakenOver) return text;
  const known = world.records.claimOf(hypervisor, externalId)?.spec.volumes ?? [];
  const devices = undeclared.flatMap(({ device, detail }) => {
    // What becomes of a disk is said as soon as a spec names it.
    const isSaid = known.some(({ id, onDelete }) => id === detail && onDelete !== undefined);
    const isOwn = !isTakenOver && isSaid;
    return isOwn ? [] : [device];
  });
  const isReported = (line: string): boolean => devices.some((one) => line.startsWith(`${one}:`));
  return text
    .split("\n")
    .filter((line) => !isReported(line))
    .join("\n");
}

interface Pair {
  readonly field: string;
  readonly wanted: string;
  readonly there: string | undefined;
}

interface ConfigOf {
  readonly site: Site;
  readonly id: string;
  readonly text: string;
}

function pairsOf(vm: VirtualMachine, { site, id, text }: ConfigOf): Pair[] {
  const { metadata, spec } = vm;
  // A file does not tell what is suspended from what is stopped.
  const off = spec.powerState === "Running" ? "Stopped" : spec.powerState;
  const power = site.isRunning(id) ? "Running" : off;
  return [
    { field: "the name", wanted: metadata.name ?? "", there: site.value(id, "name") },
    { field: "power", wanted: spec.powerState, there: power },
    // What waits for a restart is shown as such, and is not in the file yet.
    ...(mayWait(vm) ? [] : hardwarePairs(vm, text)),
  ];
}

/** Fields of the spec beside what the configuration says of them. */
export function hardwarePairs(
  { spec, status }: Pick<VirtualMachine, "spec" | "status">,
  text: string,
): Pair[] {
  const { cpu, memory, disks = [], networks = [] } = spec;
  const [config = ""] = text.split(/^\[/m);
  const valueOf = (key: string): string | undefined => {
    return new RegExp(`^${key}: (.*)$`, "m").exec(config)?.[1];
  };
  const present = disks.filter(({ state }) => state !== "Absent");
  const names = new Set(present.map(({ name }) => name));
  const own = (status?.disks ?? []).filter(({ name }) => names.has(name));
  return [
    { field: "cores", wanted: String(cpu?.cores), there: valueOf("cores") },
    {
      field: "memory",
      wanted: String(mebibytesOf(memory?.size ?? "")),
      there: valueOf("memory"),
    },
    {
      field: "disks of",
      wanted: listed(present.map(({ size = "" }) => size.replace("Gi", "G"))),
      there: listed(disksIn(config, new Set(own.map(({ volume }) => volume)))),
    },
    {
      field: "cards at",
      wanted: listed(networks.map(({ bridge = "", vlan }) => cardText(bridge, vlan))),
      there: listed(cardsIn(config)),
    },
  ];
}

/** The sizes of its disks. One that people put into it is theirs, unless the VM was adopted so. */
function disksIn(config: string, own: ReadonlySet<string | undefined>): string[] {
  const lines = [...config.matchAll(/^scsi\d+: ([^,\n]*).*$/gm)];
  return lines
    .filter(([line, volume]) => own.has(volume) || !isPassing(line))
    .map(([line]) => /size=(\w+)/.exec(line)?.[1] ?? "no size");
}

function cardsIn(config: string): string[] {
  return [...config.matchAll(/^net\d+: (.*)$/gm)].map(([, line = ""]) => {
    return cardText(/bridge=(\w+)/.exec(line)?.[1] ?? "none", /tag=(\d+)/.exec(line)?.[1]);
  });
}

function cardText(bridge: string, vlan: number | string | undefined): string {
  return vlan === undefined ? bridge : `${bridge}.${vlan}`;
}

/** In one text: which of them comes first is of no matter, how many there are is. */
function listed(texts: readonly string[]): string {
  return texts.toSorted().join(", ");
}

function mebibytesOf(size: string): number {
  const count = Number.parseInt(size, 10);
  return size.endsWith("Gi") ? count * 1024 : count;
}
