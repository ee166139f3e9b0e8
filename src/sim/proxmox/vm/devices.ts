import type { Cluster } from "../cluster.ts";
import type { Section } from "../config-file.ts";
import { PveError } from "../errors.ts";
import type { HostDevice, MappingState } from "../state.ts";

/** "mapping=gpu,pcie=1" or "0000:01:00.0,pcie=1" taken apart. */
export function parseDevice(text: string): ReadonlyMap<string, string> {
  const parts = text.split(",").filter((piece) => piece !== "");
  return new Map(
    parts.map((piece): [string, string] => {
      const at = piece.indexOf("=");
      return at < 0 ? ["host", piece] : [piece.slice(0, at), piece.slice(at + 1)];
    }),
  );
}

type Kind = HostDevice["kind"];

/** The paths that a mapping names on a node, with the identity that it expects there. */
export function mappedDevices(
  mapping: MappingState | undefined,
  node: string,
): { readonly path: string; readonly id: string }[] {
  return (mapping?.map ?? [])
    .map(parseDevice)
    .filter((entry) => entry.get("node") === node)
    .map((entry) => ({ path: entry.get("path") ?? "", id: entry.get("id") ?? "" }));
}

/** The devices that a section passes through, by option. */
export function passedThrough(section: Section): [string, ReadonlyMap<string, string>][] {
  return [...section]
    .filter(([key]) => /^(hostpci|usb)\d+$/.test(key))
    .map(([key, text]) => [key, parseDevice(text)]);
}

/** Throws unless every device that the guest asks for is on its node, as it was, and free. */
export function demandDevices(cluster: Cluster, node: string, vmid: number): void {
  const own = new Set<string>();
  for (const [key, device] of passedThrough(cluster.readGuest(node, vmid).main)) {
    const kind: Kind = key.startsWith("usb") ? "usb" : "pci";
    if (device.get("host")?.toLowerCase() === "spice") continue;
    const wanted = alternatives(cluster, node, { kind, device });
    // A USB device that is in use, or not there, is simply not seen by the guest.
    if (kind === "usb") continue;
    own.add(
      freeDevice(
        cluster,
        { node, vmid, key },
        wanted.filter((path) => !own.has(path)),
      ),
    );
  }
}

function alternatives(
  cluster: Cluster,
  node: string,
  { kind, device }: { kind: Kind; device: ReadonlyMap<string, string> },
): string[] {
  const name = device.get("mapping");
  if (name === undefined) return [fullPath(device.get("host") ?? "")];
  const found = mappedDevices(cluster.state.mappings?.[`${kind}/${name}`], node);
  const label = kind.toUpperCase();
  if (found.length === 0) throw new PveError(`${label} device mapping not found for '${name}'`);
  for (const { path, id } of found) demandUnchanged(cluster, node, { kind, path, id });
  return found.map(({ path }) => fullPath(path));
}

function demandUnchanged(
  cluster: Cluster,
  node: string,
  { kind, path, id }: { kind: Kind; path: string; id: string },
): void {
  const real = cluster.node(node).devices?.[path];
  if (real?.kind === kind && real.id === id) return;
  const invalid = kind === "pci" ? "PCI device mapping invalid" : "USB Mapping invalid";
  const what =
    real === undefined
      ? `${kind} device '${path}' not found`
      : `'id' does not match for '${path}' (${real.id} != ${id})`;
  throw new PveError(`${invalid} (hardware probably changed): ${what}`);
}

function fullPath(path: string): string {
  return /^[0-9a-f]{4}:/.test(path) ? path : `0000:${path}`;
}

/** The first of some devices that no other running guest of the node holds. */
function freeDevice(
  cluster: Cluster,
  { node, vmid, key }: { node: string; vmid: number; key: string },
  wanted: readonly string[],
): string {
  const holders = heldBy(cluster, node, vmid);
  const free = wanted.find((path) => !holders.has(path));
  if (free !== undefined) return free;
  const [only] = wanted;
  if (wanted.length !== 1 || only === undefined) {
    throw new PveError(`could not find a free device for '${key}'`);
  }
  throw new PveError(`PCI device '${only}' already in use by VMID '${holders.get(only) ?? ""}'`);
}

/** Which running guests hold which PCI devices. Nothing is noted down: it follows from configs. */
function heldBy(cluster: Cluster, node: string, except: number): Map<string, string> {
  const held = new Map<string, string>();
  for (const vmid of Object.keys(cluster.node(node).machines)) {
    if (Number(vmid) === except || !cluster.hasGuest(node, Number(vmid))) continue;
    const { main } = cluster.readGuest(node, Number(vmid));
    for (const [key, device] of passedThrough(main)) {
      if (key.startsWith("usb")) continue;
      const paths = pathsOf(cluster, node, device);
      const path = paths.find((each) => !held.has(each)) ?? paths[0];
      if (path !== undefined) held.set(path, vmid);
    }
  }
  return held;
}

function pathsOf(cluster: Cluster, node: string, device: ReadonlyMap<string, string>): string[] {
  const name = device.get("mapping");
  if (name === undefined) return [fullPath(device.get("host") ?? "")];
  const mapping = cluster.state.mappings?.[`pci/${name}`];
  return mappedDevices(mapping, node).map(({ path }) => fullPath(path));
}
