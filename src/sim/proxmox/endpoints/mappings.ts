import type { Cluster } from "../cluster.ts";
import { type Call, type Endpoint, immediate, isSet } from "../endpoint.ts";
import { PveError } from "../errors.ts";
import { splitList } from "../schema/formats.ts";
import type { HostDevice, MappingState } from "../state.ts";
import { mappedDevices, parseDevice } from "../vm/devices.ts";

type Kind = HostDevice["kind"];

function tableOf(cluster: Cluster): Record<string, MappingState> {
  const table = cluster.state.mappings ?? {};
  cluster.state.mappings = table;
  return table;
}

function found(call: Call, kind: Kind): { id: string; mapping: MappingState } {
  const { id = "" } = call.parameters;
  const mapping = tableOf(call.cluster)[`${kind}/${id}`];
  if (mapping === undefined) throw new PveError(`mapping '${id}' not found on '${kind}'`);
  return { id, mapping };
}

/** Those that the caller may use, change or see. */
function list(call: Call, kind: Kind): unknown {
  const { cluster, caller, parameters } = call;
  const privileges = ["Mapping.Modify", "Mapping.Use", "Mapping.Audit"];
  return Object.entries(tableOf(cluster))
    .filter(([path]) => path.startsWith(`${kind}/`))
    .filter(([path]) => cluster.rights.may(caller, `/mapping/${path}`, { privileges, isAny: true }))
    .map(([path, mapping]) => {
      const id = path.slice(kind.length + 1);
      return { id, type: kind, ...mapping, ...checks(cluster, parameters["check-node"], mapping) };
    });
}

/** What is wrong with a mapping on a node: only told if it is asked for. */
function checks(cluster: Cluster, node: string | undefined, mapping: MappingState): object {
  if (node === undefined) return {};
  const devices = cluster.node(node).devices ?? {};
  const wrong = mappedDevices(mapping, node)
    .filter(({ path, id }) => devices[path]?.id !== id)
    .map(({ path }) => ({ severity: "error", message: `device '${path}' is not as mapped` }));
  return { checks: wrong };
}

function create(call: Call, kind: Kind): unknown {
  const { cluster, parameters } = call;
  const { id = "", map = "", description, mdev } = parameters;
  const table = tableOf(cluster);
  if (table[`${kind}/${id}`] !== undefined) {
    throw new PveError(
      `create ${kind.toUpperCase()} mapping failed: ${kind} ID '${id}' already defined`,
    );
  }
  table[`${kind}/${id}`] = {
    map: entriesOf(map),
    ...(description === undefined ? {} : { description }),
    ...(isSet(mdev) ? { mdev: 1 } : {}),
  };
  return null;
}

/** A list comes as repeated parameters. */
function entriesOf(map: string): string[] {
  return map.split("\0").filter((entry) => parseDevice(entry).has("node"));
}

function change(call: Call, kind: Kind): unknown {
  const { mapping } = found(call, kind);
  const { map, description, mdev } = call.parameters;
  for (const name of splitList(call.parameters["delete"] ?? "")) {
    Reflect.deleteProperty(mapping, name);
  }
  if (map !== undefined) mapping.map = entriesOf(map);
  if (description !== undefined) mapping.description = description;
  if (mdev !== undefined) mapping.mdev = isSet(mdev) ? 1 : 0;
  return null;
}

function remove(call: Call, kind: Kind): unknown {
  Reflect.deleteProperty(tableOf(call.cluster), `${kind}/${call.parameters["id"] ?? ""}`);
  return null;
}

function hardware(call: Call, kind: Kind): [string, HostDevice][] {
  const devices = Object.entries(call.cluster.node(call.node).devices ?? {});
  return devices.filter(([, device]) => device.kind === kind);
}

function pciRow([id, device]: [string, HostDevice], index: number): object {
  const [vendor = "", model = ""] = device.id.split(":");
  return {
    id,
    vendor: `0x${vendor}`,
    device: `0x${model}`,
    class: "0x030000",
    iommugroup: index + 1,
    device_name: device.name,
  };
}

function usbRow([path, device]: [string, HostDevice]): object {
  const [vendid = "", prodid = ""] = device.id.split(":");
  const [busnum = "1", devnum = "1"] = path.split("-");
  return { busnum: Number(busnum), devnum: Number(devnum), vendid, prodid, product: device.name };
}

function of(kind: Kind): Record<string, Endpoint> {
  const path = `/cluster/mapping/${kind}`;
  return {
    [`GET ${path}`]: immediate((call) => list(call, kind)),
    [`POST ${path}`]: immediate((call) => create(call, kind)),
    [`GET ${path}/{id}`]: immediate((call) => {
      const { id, mapping } = found(call, kind);
      return { id, type: kind, ...mapping };
    }),
    [`PUT ${path}/{id}`]: immediate((call) => change(call, kind)),
    [`DELETE ${path}/{id}`]: immediate((call) => remove(call, kind)),
  };
}

/** Devices of the hosts, and the names that the cluster has for them (release 8 and later). */
export const mappingEndpoints: Readonly<Record<string, Endpoint>> = {
  "GET /cluster/mapping": immediate(() => ["dir", "pci", "usb"].map((name) => ({ name }))),
  ...of("pci"),
  ...of("usb"),
  "GET /nodes/{node}/hardware": immediate(() => [{ type: "pci" }, { type: "usb" }]),
  "GET /nodes/{node}/hardware/pci": immediate((call) => hardware(call, "pci").map(pciRow)),
  "GET /nodes/{node}/hardware/usb": immediate((call) => hardware(call, "usb").map(usbRow)),
};
