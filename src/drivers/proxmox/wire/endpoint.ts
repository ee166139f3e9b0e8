/**
 * The endpoint of a path as the API's documentation names it, without the names of nodes, machines,
 * storages, volumes and tasks: "/nodes/{node}/qemu/{vmid}/config". For people who count calls.
 */
export function endpointOf(path: string): string {
  const parts = path.split("/").slice(1);
  const named = parts.map((part, i) => places[placeOf(parts, i)] ?? part);
  return `/${named.join("/")}`;
}

/** What stands before a place, by its own place: the part before it, with what belongs to it. */
function placeOf(parts: readonly string[], i: number): string {
  if (i === 1) return parts[0] ?? "";
  const [collection = "", , resource = ""] = parts;
  if (collection === "nodes") {
    if (i === 3) return `nodes/${resource}`;
    if (i === 5) return `nodes/${resource}/${parts[4] ?? ""}`;
    return "";
  }
  return i === 3 ? `${collection}/${parts[1] ?? ""}/${resource}` : "";
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
