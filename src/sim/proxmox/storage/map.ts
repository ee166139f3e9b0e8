/**
 * Where the disks of a storage go, by a map as Proxmox writes them: "1" keeps all, "other" sends
 * everything to one, "a:b,c:d" names pairs, and a lone name beside pairs stands for all others.
 */
export function storageFor(map: string | undefined, storage: string): string {
  const entries = (map ?? "1").split(/[,;\s]+/).map((entry) => entry.split(":"));
  const pair = entries.find(([from, to]) => to !== undefined && from === storage);
  if (pair?.[1] !== undefined) return pair[1];
  const [only] = entries.find((entry) => entry.length === 1) ?? [];
  return only === undefined || only === "1" ? storage : only;
}
