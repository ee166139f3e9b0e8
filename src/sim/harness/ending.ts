import { demandBounds } from "./bounds.ts";
import { differences, inventoryOf } from "./inventory.ts";
import { demandNoSecret } from "./laws-secrets.ts";
import type { Records } from "./records.ts";
import type { GuestVolume, Site } from "./site.ts";
import { Violation } from "./violation.ts";
import type { World } from "./world.ts";

/** Law 2: every object is gone, so whatever Berth made is gone too, or was let go by name. */
export function demandNothingLeft({ sites, records }: World): void {
  for (const site of sites.values()) {
    for (const what of leftOn(site, records)) {
      throw new Violation(2, `nothing is declared, and ${what} is on ${site.name}`);
    }
    for (const line of changesOn(site, records)) {
      throw new Violation(2, `nothing is declared, and ${site.name} is not as it was: ${line}`);
    }
  }
  for (const { metadata, spec } of records.claims.values()) {
    if (spec.state === "Quarantined" || spec.state === "Released") continue;
    const claim = `the Claim ${metadata.name ?? ""}`;
    throw new Violation(2, `nothing is declared, and ${claim} is ${spec.state}`);
  }
}

/**
 * On the own storages of a node to which people moved a machine, what a worker left that died there
 * cannot be told from what lay there before. And a disk that was to stay, whose id was used again
 * on another node, has no Claim any more. Of both an Orphan tells, and a person decides.
 */
function* leftOn(site: Site, records: Records): Generator<string> {
  const isReleased = (id: string): boolean => {
    return records.claimOf(site.name, id)?.spec.state === "Released";
  };
  for (const [id, { by }] of site.guests) {
    if (by === "berth" && !isReleased(id)) yield `the machine ${id}`;
  }
  for (const { key, backing, name, vmid } of site.guestVolumes()) {
    if (site.volumes.get(key)?.by !== "berth" || isReleased(vmid)) continue;
    const isTold = toldOn(site, records).some((id) => id.includes(name));
    if (!isTold || !isNobodys(site, { key, backing, vmid })) yield `the volume ${key}`;
  }
}

function isNobodys(
  { moves, letGo }: Site,
  { key, backing, vmid }: Pick<GuestVolume, "key" | "backing" | "vmid">,
): boolean {
  return letGo.has(key) || moves.has(`${backing.slice(0, backing.indexOf(":"))}:${vmid}`);
}

/** Whether something is left of which no Orphan tells yet. */
export function hasUntold({ sites, records }: World): boolean {
  return [...sites.values()].some((site) => {
    return changesOn(site, records).length > 0 || !leftOn(site, records).next().done;
  });
}

/** Which things on a cluster Orphans tell of. */
function toldOn({ name }: Site, { orphans }: Records): string[] {
  const here = [...orphans.values()].filter(({ spec }) => spec.hypervisor === name);
  return here.map(({ spec }) => spec.externalId);
}

/**
 * Files, pools, HA and rights that came or went. What a machine that was let go of uses, it keeps,
 * and of what nobody knew any more an Orphan tells.
 */
function changesOn(site: Site, records: Records): string[] {
  const changes = differences(site.before, inventoryOf(site.model.cluster.state));
  if (changes.length === 0) return [];
  const files = [...site.guests.keys()].map((id) => site.text(id) ?? "");
  const known = [...files, ...toldOn(site, records)];
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

function thingsOn({ model, handled }: Site): number {
  const { guests, volumes } = model.cluster.state;
  return handled.size + Object.keys(guests).length + Object.values(volumes).flat().length;
}
