/**
 * The endpoint of a path as the API's documentation names it, without the names of nodes, machines,
 * storages, volumes and tasks: "/nodes/{node}/qemu/{vmid}/config". For people who count calls.
 */
export function endpointOf(path: string): string {
  const parts = path.split("/").slice(1);
  const named = parts.map((part, i) => places[placeOf(parts, i)] ?? part);
  return `/${named.join("/")}`;
}

/** What stands before a place, without the names in it: "nodes/qemu" before the number of a VM. */
function placeOf(parts: readonly string[], i: number): string {
  if (i % 2 === 0) return "";
  const before = parts.slice(0, i);
  // Below /nodes every second part is a name; below /cluster none of the first two is.
  const isNamed = parts[0] !== "cluster";
  return before.filter((_, at) => !isNamed || at % 2 === 0).join("/");
}

const places: Readonly<Record<string, string>> = {
  nodes: "{node}",
  pools: "{pool}",
  storage: "{storage}",
  "nodes/qemu": "{vmid}",
  "nodes/lxc": "{vmid}",
  "nodes/storage": "{storage}",
  "nodes/tasks": "{upid}",
  "nodes/network": "{iface}",
  "nodes/storage/content": "{volume}",
  "nodes/qemu/snapshot": "{snapname}",
  "cluster/ha/resources": "{sid}",
  "cluster/ha/rules": "{rule}",
};
