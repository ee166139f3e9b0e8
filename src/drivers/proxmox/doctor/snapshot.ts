import { answered, failed } from "../../../hypervisor/index.ts";
import type { Answer } from "../../../hypervisor/index.ts";
import { isJsonObject, type JsonObject } from "../../../kernel/json.ts";
import { ConfigReader, machinePath } from "../config-reader.ts";
import { readFailureOf } from "../errors.ts";
import type { PveApi, PveResult } from "../wire/api.ts";
import { parseProperties, property } from "../wire/property-string.ts";
import { isSet, rowsOf, textOf } from "../wire/rows.ts";
import { isEpochPool } from "../epoch.ts";
import { pathPart } from "../wire/wire.ts";
import {
  type ClusterInventory,
  inventoryFormat,
  inventoryVersion,
  type ListedMachine,
  type ListedNode,
  type ListedPool,
  type ListedStorage,
} from "./cluster-inventory.ts";
import { publicConfig } from "./public-config.ts";
import { readVolumes } from "./volumes.ts";

/** Everything that a rehearsal needs, and no secret. The same cluster gives the same inventory. */
export async function takeSnapshot(api: PveApi): Promise<Answer<ClusterInventory>> {
  const [version, resources, storageConfig] = await Promise.all([
    api.get("/version"),
    api.get("/cluster/resources"),
    api.get("/storage"),
  ]);
  if (version.type !== "data") return notRead(version, "ask for the version");
  if (resources.type !== "data") return notRead(resources, "look at the cluster");
  if (storageConfig.type !== "data") return notRead(storageConfig, "list the storages");
  const rows = rowsOf(resources.data);
  const missing: string[] = [];
  const machines = await readMachines(api, rows, missing);
  const storages = storagesOf(rowsOf(storageConfig.data), rows);
  return answered({
    format: inventoryFormat,
    version: inventoryVersion,
    release: isJsonObject(version.data) ? textOf(version.data, "version") : "",
    cluster: await clusterName(api),
    nodes: await readNodes(api, rows, machines),
    storages,
    volumes: await readVolumes(api, storages, missing),
    machines,
    pools: await readPools(api, machines),
    missing: missing.toSorted(),
  });
}

function notRead(result: Exclude<PveResult, { type: "data" }>, what: string): Answer<never> {
  return failed(readFailureOf(result, what));
}

async function clusterName(api: PveApi): Promise<string> {
  const status = await api.get("/cluster/status");
  const rows = status.type === "data" ? rowsOf(status.data) : [];
  const cluster = rows.find((row) => row["type"] === "cluster");
  return cluster === undefined ? "" : textOf(cluster, "name");
}

async function readMachines(
  api: PveApi,
  rows: readonly JsonObject[],
  missing: string[],
): Promise<ListedMachine[]> {
  const configs = new ConfigReader(api);
  for (const row of rows.filter(({ type }) => type === "lxc")) {
    missing.push(`CT ${textOf(row, "vmid")} on ${textOf(row, "node")}: containers are left out`);
  }
  const read = rows
    .filter((row) => row["type"] === "qemu")
    .map(async (row): Promise<ListedMachine[]> => {
      const vmid = Number(row["vmid"]);
      const node = textOf(row, "node");
      const config = await configs.read({ node, externalId: String(vmid) });
      if (config.type !== "config") {
        const why = config.type === "failed" ? config.failure.message : "it has just moved or gone";
        missing.push(`VM ${vmid} on ${node}: ${why}`);
        return [];
      }
      const pool = textOf(row, "pool");
      return [
        {
          vmid,
          node,
          isRunning: await isRunning(api, row),
          ...(pool === "" ? {} : { pool }),
          config: publicConfig(config.config.values, vmid),
        },
      ];
    });
  return (await Promise.all(read)).flat().toSorted((a, b) => a.vmid - b.vmid);
}

/** The list does not know yet what a machine does that was made in these seconds. */
async function isRunning(api: PveApi, row: JsonObject): Promise<boolean> {
  if (row["status"] === "running" || row["status"] === "stopped")
    return row["status"] === "running";
  const place = { node: textOf(row, "node"), externalId: textOf(row, "vmid") };
  const current = await api.get(machinePath(place, "/status/current"));
  return current.type === "data" && isJsonObject(current.data)
    ? current.data["status"] === "running"
    : false;
}

async function readNodes(
  api: PveApi,
  rows: readonly JsonObject[],
  machines: readonly ListedMachine[],
): Promise<ListedNode[]> {
  const nodes = rows.filter((row) => row["type"] === "node");
  const read = nodes.map(async (row): Promise<ListedNode> => {
    const name = textOf(row, "node");
    const network = await api.get(`/nodes/${pathPart(name)}/network`, { type: "any_bridge" });
    const listed = network.type === "data" ? rowsOf(network.data) : [];
    const used = machines.filter(({ node }) => node === name).flatMap(bridgesOf);
    const bridges = [...listed.map((each) => textOf(each, "iface")), ...used];
    return {
      name,
      isOnline: row["status"] === "online",
      cpus: Number(row["maxcpu"] ?? 0),
      memoryBytes: Number(row["maxmem"] ?? 0),
      bridges: [...new Set(bridges)].toSorted(),
    };
  });
  return (await Promise.all(read)).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** What machines are plugged into is there, also where the token may not list it. */
function bridgesOf({ config }: ListedMachine): string[] {
  return Object.entries(config)
    .filter(([key]) => /^net\d+$/.test(key))
    .flatMap(([, value]) => property(parseProperties(value, "model"), "bridge") ?? []);
}

function storagesOf(configs: readonly JsonObject[], rows: readonly JsonObject[]): ListedStorage[] {
  const listed = configs.map((config): ListedStorage => {
    const name = textOf(config, "storage");
    const seen = rows.filter((row) => row["type"] === "storage" && row["storage"] === name);
    const isShared = seen.some((row) => isSet(row, "shared"));
    const nodes = textOf(config, "nodes");
    const sized = seen.filter((row) => typeof row["maxdisk"] === "number");
    const spaces = sized
      .map((row) => ({
        node: textOf(row, "node"),
        totalBytes: Number(row["maxdisk"]),
        usedBytes: Number(row["disk"] ?? 0),
      }))
      .toSorted((a, b) => (a.node < b.node ? -1 : 1));
    return {
      name,
      type: textOf(config, "type"),
      contents: textOf(config, "content").split(",").toSorted(),
      isShared,
      isDisabled: isSet(config, "disable"),
      ...(nodes === "" ? {} : { nodes: nodes.split(",").toSorted() }),
      spaces: isShared ? spaces.slice(0, 1) : spaces,
    };
  });
  return listed.toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/**
 * Pools that the token may see, and those that machines are in. The epoch of a Berth is left out:
 * on a copy of the cluster it would say that another run of the installation acts there.
 */
async function readPools(api: PveApi, machines: readonly ListedMachine[]): Promise<ListedPool[]> {
  const result = await api.get("/pools");
  const listed = result.type === "data" ? rowsOf(result.data) : [];
  const names = new Set([
    ...listed.map((row) => textOf(row, "poolid")).filter((name) => !isEpochPool(name)),
    ...machines.flatMap(({ pool }) => pool ?? []),
  ]);
  const read = [...names].toSorted().map(async (name): Promise<ListedPool> => {
    const pool = await api.get(`/pools/${pathPart(name)}`);
    const found = pool.type === "data" && isJsonObject(pool.data) ? pool.data["members"] : [];
    const members = rowsOf(found).filter((row) => row["type"] === "storage");
    return { name, storages: members.map((row) => textOf(row, "storage")).toSorted() };
  });
  return Promise.all(read);
}
