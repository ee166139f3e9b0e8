import type { Site } from "./site.ts";

/** A machine, and where it is. */
export interface Found {
  readonly site: Site;
  readonly id: string;
}

/** A volume of somebody's own, under the id of a machine; false if there is one of that name. */
export function putVolume({ site, id }: Found, backing: string, name: string): boolean {
  const { volumes: backings } = site.model.cluster.state;
  const volumes = backings[backing] ?? [];
  backings[backing] = volumes;
  if (volumes.some((volume) => volume.name === name)) return false;
  const sizes = { sizeBytes: 1024 ** 3, usedBytes: 0, createdMs: 0 };
  volumes.push({ name, content: "images", format: "raw", vmid: Number(id), ...sizes });
  site.volumes.set(`${backing}/${name}`, { by: "person", uid: undefined });
  site.touched(id);
  return true;
}

/** Somebody removes the volumes of this name. */
export function takeVolume(site: Site, name: string): void {
  for (const volumes of Object.values(site.model.cluster.state.volumes)) {
    const index = volumes.findIndex((volume) => volume.name === name);
    if (index === -1) continue;
    for (const volume of volumes.splice(index, 1)) site.goneByHand.add(volume);
  }
  site.personActed();
}

/** The local disks of a machine go with it. */
export function moveVolumes(
  site: Site,
  id: string,
  { from, to }: { readonly from: string; readonly to: string },
): void {
  const { volumes } = site.model.cluster.state;
  for (const [backing, list] of Object.entries(volumes)) {
    if (!backing.startsWith(`${from}:`)) continue;
    const target = `${to}${backing.slice(from.length)}`;
    const mine = list.filter(({ vmid }) => vmid === Number(id));
    if (mine.length === 0) continue;
    // In place: work that goes on at this moment holds the same lists.
    for (const volume of mine) list.splice(list.indexOf(volume), 1);
    (volumes[target] ??= []).push(...mine);
    for (const { name } of mine) {
      const origin = site.volumes.get(`${backing}/${name}`);
      site.volumes.delete(`${backing}/${name}`);
      if (origin !== undefined) site.volumes.set(`${target}/${name}`, origin);
    }
  }
}
