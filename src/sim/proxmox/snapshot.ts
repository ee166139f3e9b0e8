import type {
  ClusterInventory,
  ListedMachine,
  ListedNode,
  ListedSpace,
  ListedStorage,
  ListedVolume,
} from "../../drivers/proxmox/index.ts";
import { emptyConfig, formatConfig } from "./config-file.ts";
import { PveError } from "./errors.ts";
import { type Release, releases } from "./release.ts";
import type { ClusterState, MachineState, NodeState, StorageConfig, Volume } from "./state.ts";
import { formatOf, parseVolumeName } from "./storage/names.ts";
import { backingOf } from "./storage/storages.ts";

/**
 * A simulated twin of a cluster from its inventory. Users, rights and certificates are those of
 * `base`; everything else is as the inventory says. What the inventory does not hold (paths of
 * storages, addresses, cloud-init) is made up, always in the same way.
 */
export function twinOf(inventory: ClusterInventory, base: ClusterState): ClusterState {
  const storages = inventory.storages.map(storageConfig);
  return {
    ...base,
    clusterName: inventory.cluster === "" ? base.clusterName : inventory.cluster,
    nodes: inventory.nodes.map((node, index) => nodeState(node, index, { inventory, base })),
    guests: Object.fromEntries(inventory.machines.map(guestFile)),
    storages,
    ...contents(inventory, storages, base.nodes[0]?.bootedMs ?? 0),
    pools: inventory.pools.map(({ name, storages: members }) => ({
      poolid: name,
      vms: inventory.machines.filter(({ pool }) => pool === name).map(({ vmid }) => vmid),
      storages: [...members],
    })),
    nextPid: base.nextPid + inventory.machines.length,
  };
}

/** The simulated release that is nearest to a real one: the newest of the same generation. */
export function nearestRelease(version: string): Release {
  const major = Number.parseInt(version, 10);
  const older = releases.filter((release) => Number.parseInt(release, 10) <= major);
  return older.at(-1) ?? releases[0] ?? "9.2";
}

function nodeState(
  { name, isOnline, cpus, memoryBytes, bridges }: ListedNode,
  index: number,
  { inventory, base }: { inventory: ClusterInventory; base: ClusterState },
): NodeState {
  const bootedMs = base.nodes[0]?.bootedMs ?? 0;
  const running = inventory.machines
    .map((machine, number) => ({ ...machine, pid: base.nextPid + number }))
    .filter((machine) => machine.node === name && machine.isRunning && isOnline);
  const machines = running.map(({ vmid, pid, config }): [string, MachineState] => {
    const agent = /^(?:1|.*enabled=1)/.test(config["agent"] ?? "") ? "running" : "absent";
    const guest = { agent, agentAfterMs: 0, obeysShutdown: true } as const;
    return [String(vmid), { pid, startedMs: bootedMs, isPaused: false, guest }];
  });
  return {
    name,
    address: `192.0.2.${10 + (index % 240)}`,
    isOnline,
    bootedMs,
    cpus,
    memoryBytes,
    bridges: [...bridges],
    machines: Object.fromEntries(machines),
    tasks: [],
  };
}

function guestFile({
  vmid,
  node,
  config,
}: ListedMachine): [string, { node: string; text: string }] {
  const main = new Map(Object.entries(config));
  return [String(vmid), { node, text: formatConfig({ ...emptyConfig(), main }) }];
}

/** Paths and pools are named for the storage: two storages never lie on the same bytes. */
function storageConfig(listed: ListedStorage): StorageConfig {
  const { name, type, contents: content, isShared, isDisabled, nodes } = listed;
  return {
    storage: name,
    type,
    content: content.join(","),
    ...placeOf(name, type),
    ...(nodes === undefined ? {} : { nodes: nodes.join(",") }),
    ...(isShared ? { shared: 1 } : {}),
    ...(isDisabled ? { disable: 1 } : {}),
  };
}

function placeOf(name: string, type: string): Partial<StorageConfig> {
  switch (type) {
    case "dir":
      return { path: name === "local" ? "/var/lib/vz" : `/srv/${name}` };
    case "zfspool":
      return { pool: `rpool/${name}` };
    case "rbd":
      return { pool: name };
    case "lvmthin":
      return { vgname: "pve", thinpool: name };
    case "lvm":
      return { vgname: name };
    case "nfs":
      return { server: "192.0.2.2", export: `/export/${name}` };
    default:
      return {};
  }
}

function contents(
  { storages: listed, volumes }: ClusterInventory,
  storages: readonly StorageConfig[],
  nowMs: number,
): Pick<ClusterState, "volumes" | "capacities"> {
  const made: Record<string, Volume[]> = {};
  const capacities: Record<string, number> = {};
  for (const [index, { name, isShared, spaces }] of listed.entries()) {
    const config = storages[index];
    if (config === undefined) continue;
    for (const space of spaces) {
      const backing = backingOf(config, space.node);
      const here = volumes.filter(({ storage, node }) => {
        return storage === name && (isShared || node === space.node);
      });
      capacities[backing] = space.totalBytes;
      made[backing] = withSpace(here, { config, space, nowMs });
    }
  }
  return { volumes: made, capacities };
}

/**
 * The volumes, taking together as much as the storage says is taken. Where it does not say for a
 * volume, what remains is given to them in their order; what nobody accounts for (backups, other
 * files) is one volume of a content that no list shows.
 */
function withSpace(
  listed: readonly ListedVolume[],
  { config, space, nowMs }: { config: StorageConfig; space: ListedSpace; nowMs: number },
): Volume[] {
  const known = listed.reduce((sum, { usedBytes = 0 }) => sum + usedBytes, 0);
  let rest = Math.max(0, space.usedBytes - known);
  const volumes = listed.flatMap((volume): Volume[] => {
    const usedBytes = volume.usedBytes ?? Math.min(volume.sizeBytes, rest);
    const made = volumeOf(volume, { config, usedBytes, nowMs });
    if (made === undefined) rest += volume.usedBytes ?? 0;
    else if (volume.usedBytes === undefined) rest -= usedBytes;
    return made === undefined ? [] : [made];
  });
  if (rest === 0) return volumes;
  const other = { name: "unlisted", content: "unlisted", format: "raw", createdMs: nowMs } as const;
  return [...volumes, { ...other, sizeBytes: rest, usedBytes: rest }];
}

/** Undefined for a name that no storage of this kind would give: it only takes space. */
function volumeOf(
  { name, content, format, sizeBytes }: ListedVolume,
  { config, usedBytes, nowMs }: { config: StorageConfig; usedBytes: number; nowMs: number },
): Volume | undefined {
  try {
    const { vmid, base } = parseVolumeName(config, name);
    return {
      name: base === undefined ? name : name.slice(base.length + 1),
      content,
      format: formatOf(format),
      sizeBytes,
      usedBytes,
      createdMs: nowMs,
      // Something is on it: a rehearsed machine boots, and an image can be imported.
      data: `${config.storage}:${name}`,
      ...(vmid === undefined ? {} : { vmid }),
      ...(base === undefined ? {} : { base }),
    };
  } catch (error) {
    if (!(error instanceof PveError)) throw error;
    return undefined;
  }
}
