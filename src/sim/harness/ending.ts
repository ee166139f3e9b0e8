import type { Orphan } from "../../api/index.ts";
import { demandBounds } from "./bounds.ts";
import { differences, inventoryOf } from "./inventory.ts";
import { demandNoSecret } from "./laws-secrets.ts";
import { chosenNames, isNamed } from "./provable.ts";
import { isHeld, type Records } from "./records.ts";
import type { GuestVolume, Site } from "./site.ts";
import { Violation } from "./violation.ts";
import type { World } from "./world.ts";

/** Law 2: every object is gone, so whatever Berth made is gone too, or was let go by name. */
export function demandNothingLeft(world: World): void {
  const { sites, records } = world;
  for (const site of sites.values()) {
    for (const what of leftOn(site, world)) {
      throw new Violation(2, `nothing is declared, and ${what} is on ${site.name}`);
    }
    for (const line of changesOn(site, records)) {
      throw new Violation(2, `nothing is declared, and ${site.name} is not as it was: ${line}`);
    }
  }
  for (const { metadata, spec } of [...records.claims.values(), ...records.files.values()]) {
    if (spec.state === "Quarantined" || spec.state === "Released") continue;
    const claim = `the Claim ${metadata.name ?? ""}`;
    throw new Violation(2, `nothing is declared, and ${claim} is ${spec.state}`);
  }
}

/**
 * What may be left: what was released, with the volumes that its Claim or its file names; and a
 * volume of which an Orphan tells, if nothing can prove that it is Berth's. See `mayStay`.
 */
function* leftOn(site: Site, world: World): Generator<string> {
  const { records } = world;
  for (const [id, { by }] of site.guests) {
    const isLeft = records.claimOf(site.name, id)?.spec.state === "Released";
    if (by === "berth" && !isLeft) yield `the machine ${id}`;
  }
  for (const volume of site.guestVolumes()) {
    if (site.volumes.get(volume.key)?.by !== "berth") continue;
    if (!isReleased(site, records, volume) && !mayStay(site, world, volume)) {
      yield `the volume ${volume.key}`;
    }
  }
}

function isReleased(site: Site, records: Records, { name, vmid }: GuestVolume): boolean {
  const claim = records.claimOf(site.name, vmid)?.spec;
  if (claim?.state !== "Released") return false;
  const isKnown = claim.volumes?.some(({ id }) => isNamed(id, name)) === true;
  return isKnown || site.text(vmid)?.includes(name) === true;
}

/**
 * On ZFS nothing is logged: what a dead worker left there is only probably Berth's, and an Orphan
 * says so with the evidence, or without where no list showed it while its Claim was open. On the
 * own storages of a node to which people moved a VM, what a worker left that died there cannot be
 * told from what was there before. And a disk that was to stay, whose id was used again on another
 * node, has no Claim any more. Of both an Orphan tells.
 */
function mayStay(site: Site, world: World, volume: GuestVolume): boolean {
  const { records } = world;
  const told = [...records.orphans.values()].find(({ spec }) => {
    return spec.hypervisor === site.name && isNamed(spec.externalId, volume.name);
  });
  // While a VM has the id, what bears it is taken for the VM's.
  const isOther = isOfCopy(world, volume);
  if (told === undefined) {
    return (isOther || site.letGo.has(volume.key)) && site.guests.has(volume.vmid);
  }
  if (isOther || isLetGo(site, volume)) return true;
  const isResized = records.resized.has(`${site.name} ${volume.key}`);
  // Somebody made it larger, and nobody saw it in its place since.
  if (isResized) return told.status?.ownership === "Unattributed";
  return isUnproven(records, volume, told);
}

/** Whether nothing could prove that a volume is Berth's, and its Orphan does not say so either. */
function isUnproven(records: Records, { name, backing }: GuestVolume, { status }: Orphan): boolean {
  // The name of a blank disk was in its Claim before: that proves it, on every storage, unless the
  // server allocated it so late that the Claim was given up.
  if (isChosen(name)) return [...records.awaited].some((id) => isNamed(id, name));
  return isSilent(backing) && ["Probable", "Unattributed"].includes(status?.ownership ?? "");
}

/**
 * Law 2, at rest: volumes of Berth's that no VM has, no Claim names and no Orphan tells of. What a
 * task made that nobody remembers is told when its VM is gone. Where people lost the Claim of a VM,
 * what it knew is lost with it: an Orphan tells of the VM, and of what bears its id when that has
 * gone. So it does of disks that were to stay, whose id was used again. What a copy of the
 * installation allocated by name is in the copy's Claim alone: it is told when its id is free.
 */
export function unknownVolumes(world: World): string[] {
  const { sites, records } = world;
  const claimed = [...records.claims.values()].flatMap(({ spec }) => {
    return [...(spec.volumes ?? []).map(({ id }) => id), ...chosenNames(spec.allocation)];
  });
  return [...sites.values()].flatMap((site) => {
    const files = [...site.guests.keys()].map((id) => site.text(id) ?? "");
    const known = [...files, ...claimed, ...toldOn(site, records)];
    return [...site.guestVolumes()]
      .filter(({ key }) => site.volumes.get(key)?.by === "berth")
      .filter((volume) => !isLetGo(site, volume))
      .filter((volume) => !isOfCopy(world, volume) || !isTaken(site, records, volume))
      .filter(({ vmid }) => !site.forgotten.has(vmid) && !toldMachinesOn(site, records).has(vmid))
      .filter(({ name }) => !known.some((text) => text.includes(name)))
      .map(({ key }) => `${key} on ${site.name}`);
  });
}

/** A copy chose the name, and wrote it into its own Claim: the original cannot know it. */
function isOfCopy({ copies }: World, { name }: GuestVolume): boolean {
  return copies.some(({ chosen }) => [...chosen].some((id) => isNamed(id, name)));
}

/** A VM has the id or is to get it: what bears the id is taken for the VM's. */
function isTaken({ name, guests }: Site, records: Records, { vmid }: GuestVolume): boolean {
  const claim = records.claimOf(name, vmid)?.spec;
  return guests.has(vmid) || (claim !== undefined && isHeld(claim));
}

function isChosen(name: string): boolean {
  return /-berth-[0-9a-f]+(?:\.\w+)?$/.test(name);
}

function isSilent(backing: string): boolean {
  return backing.endsWith("rpool/data");
}

/** A disk that was to stay, or one on a node to which people moved its VM. */
function isLetGo(
  { moves, letGo }: Site,
  { key, backing, vmid }: Pick<GuestVolume, "key" | "backing" | "vmid">,
): boolean {
  return letGo.has(key) || moves.has(`${backing.slice(0, backing.indexOf(":"))}:${vmid}`);
}

/** Whether something is left of which no Orphan tells yet. */
export function hasUntold(world: World): boolean {
  const { sites, records } = world;
  return [...sites.values()].some((site) => {
    return changesOn(site, records).length > 0 || !leftOn(site, world).next().done;
  });
}

/** Which things on a cluster Orphans tell of. */
function toldOn({ name }: Site, { orphans }: Records): string[] {
  const here = [...orphans.values()].filter(({ spec }) => spec.hypervisor === name);
  return here.map(({ spec }) => spec.externalId);
}

function toldMachinesOn({ name }: Site, { orphans }: Records): Set<string> {
  const specs = [...orphans.values()].map(({ spec }) => spec);
  const machines = specs.filter((spec) => spec.hypervisor === name && spec.kind === "Machine");
  return new Set(machines.map(({ externalId }) => externalId));
}

/** Image files that nothing proves to be Berth's: their Claims say so, and they stay. */
function unprovenFiles({ name }: Site, { files }: Records): string[] {
  return [...files.values()].flatMap(({ spec }) => {
    const isReleasedHere = spec.hypervisor.name === name && spec.state === "Released";
    return isReleasedHere && spec.file !== undefined ? [spec.file.name] : [];
  });
}

/**
 * Files, pools, HA and rights that came or went. What a machine that was let go of uses, it keeps,
 * and of what nobody knew any more an Orphan tells.
 */
function changesOn(site: Site, records: Records): string[] {
  const changes = differences(site.before, inventoryOf(site.model.cluster.state));
  if (changes.length === 0) return [];
  const files = [...site.guests.keys()].map((id) => site.text(id) ?? "");
  const known = [...files, ...toldOn(site, records), ...unprovenFiles(site, records)];
  return changes.filter((line) => {
    const name = line.slice(line.lastIndexOf("/") + 1);
    return !line.startsWith("+") || !known.some((text) => text.includes(name));
  });
}

/** Law "secrets": not in the files and the tasks of the clusters, and not in any metrics. */
export async function demandSilence({ sites, metrics }: World): Promise<void> {
  for (const { name, model } of sites.values()) {
    const { guests, nodes } = model.cluster.state;
    for (const [id, file] of Object.entries(guests)) {
      demandNoSecret(() => `the configuration of ${id} on ${name}`, file.text);
    }
    for (const { upid, log } of nodes.flatMap(({ tasks }) => tasks)) {
      demandNoSecret(() => `the log of ${upid} on ${name}`, log.join("\n"));
    }
  }
  for (const one of metrics) demandNoSecret(() => "metrics", await one.text());
}

/** Law "bounds": what the store keeps when everything may be forgotten that is long past. */
export async function demandSmall({ house, records, sites, starts, clock }: World): Promise<void> {
  const { store, disk } = house;
  if (store === undefined) throw new Error("the API is down");
  await store.compact(clock.nowMs() + 24 * 3_600_000);
  const objects = new Map([...records.writes.keys()].map((of) => [of, store.count(of)]));
  const ids = [...sites.values()].reduce((sum, { creates }) => sum + creates.size, 0);
  const things = [...sites.values()].reduce((sum, site) => sum + thingsOn(site), 0);
  const { declared } = records;
  demandBounds({ objects, records: disk.recordCount(), declared, ids, things, starts });
}

function thingsOn({ model, handled, everVolumes }: Site): number {
  const { guests, volumes } = model.cluster.state;
  const files = Object.values(volumes).flat().length;
  return handled.size + Object.keys(guests).length + files + everVolumes.size;
}
