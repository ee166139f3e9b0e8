import type { ClaimSpec } from "../../api/index.ts";
import { isNamed } from "./provable.ts";
import type { Site } from "./site.ts";

/** Ids whose machines were released and not adopted since. */
const released = new WeakMap<Site, Set<string>>();

/**
 * What the Claim of a machine says of whose its volumes are. What is Released, or lies with a
 * disk-holder VM, is for people; so is a disk that was to stay when its Claim is given up. Whoever
 * adopts a machine again takes over what it has then, also a disk that somebody put into it.
 */
export function noteLetGo(site: Site, claim: ClaimSpec, before?: ClaimSpec): void {
  const { state, role, externalId } = claim;
  if (state === "Quarantined") noteRetained(site, before);
  const ids = released.get(site) ?? new Set<string>();
  released.set(site, ids);
  if (state === "Bound" && ids.delete(externalId)) noteAdopted(site, claim);
  if (state !== "Released" && role !== "DiskHolder") return;
  if (state === "Released") ids.add(externalId);
  for (const { key, vmid } of site.guestVolumes()) if (vmid === externalId) site.letGo.add(key);
}

function noteRetained(site: Site, before: ClaimSpec | undefined): void {
  const stay = before?.volumes?.filter(({ onDelete }) => onDelete === "Retain") ?? [];
  for (const { key, name } of site.guestVolumes()) {
    if (stay.some(({ id }) => isNamed(id, name))) site.letGo.add(key);
  }
}

function noteAdopted(site: Site, { externalId, volumes = [], owner }: ClaimSpec): void {
  const names = new Set(volumes.map(({ id }) => id.replace(/^.*[:/]/, "")));
  for (const { key, name, vmid } of site.guestVolumes()) {
    if (vmid !== externalId || !names.has(name)) continue;
    if (site.volumes.has(key)) site.volumes.set(key, { by: "berth", uid: owner.uid });
  }
}
