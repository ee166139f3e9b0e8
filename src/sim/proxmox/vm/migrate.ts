import type { Cluster } from "../cluster.ts";
import { copyConfig, type GuestConfig } from "../config-file.ts";
import {
  type Call,
  demandRootFor,
  demandUnlocked,
  fork,
  guestLock,
  isSet,
  vmidOf,
} from "../endpoint.ts";
import { messageOf, parameterError, PveError } from "../errors.ts";
import { locked, type Process } from "../process.ts";
import { storageFor } from "../storage/map.ts";
import { parseVolumeId } from "../storage/names.ts";
import { hasContent, isOnNode, storageConfig, usableStorage } from "../storage/storages.ts";
import { mappedDevices, passedThrough } from "./devices.ts";
import { drivesOf } from "./drive.ts";
import { queueHa } from "./ha.ts";
import {
  copyAcross,
  freeCopies,
  localVolumes,
  renameVolumes,
  scanVolumes,
} from "./migrate-disks.ts";
import type { Copied, Migration, MigrationOptions } from "./migrate-disks.ts";

/** GET …/migrate: whether and where to it could go. */
export function migrationState({ cluster, node, parameters }: Call): unknown {
  cluster.demandQuorum();
  const vmid = Number(parameters["vmid"]);
  const config = cluster.readGuest(node, vmid);
  demandUnlocked(config);
  const isRunning = cluster.isRunning(node, vmid);
  const others = cluster.state.nodes.map(({ name }) => name).filter((name) => name !== node);
  const refusals = others.map((name) => [name, refusalOf(cluster, name, config)] as const);
  const mapped = passedThrough(config.main).filter(([, device]) => device.has("mapping"));
  return {
    running: isRunning ? 1 : 0,
    allowed_nodes: refusals.flatMap(([name, refusal]) => (refusal === undefined ? [name] : [])),
    not_allowed_nodes: Object.fromEntries(
      refusals.flatMap(([name, refusal]) => (refusal === undefined ? [] : [[name, refusal]])),
    ),
    local_disks: localVolumes(cluster, node, vmid).map(({ volid, volume, ref }) => ({
      volid,
      size: volume.sizeBytes,
      cdrom: ref === "cdrom" || ref === "generated" ? 1 : 0,
      is_unused: ref === "unused" ? 1 : 0,
    })),
    local_resources: localDevices(config, isRunning),
    "mapped-resources": mapped.map(([key]) => key).sort(),
    ...(cluster.state.release === "9.2" ? mappedInfo(mapped) : {}),
  };
}

function mappedInfo(mapped: [string, ReadonlyMap<string, string>][]): object {
  const info = mapped.map(([key, device]): [string, object] => {
    return [key, { name: device.get("mapping") }];
  });
  return { "mapped-resource-info": Object.fromEntries(info), "has-dbus-vmstate": 1 };
}

/** Why a node cannot take the guest: a storage or a mapped device that it does not have. */
function refusalOf(cluster: Cluster, node: string, config: GuestConfig): object | undefined {
  const storages = drivesOf(config.main)
    .filter(([, { file }]) => file.includes(":"))
    .map(([, { file }]) => storageConfig(cluster, parseVolumeId(file).storage))
    .filter((storage) => storage.disable === 1 || !isOnNode(storage, node))
    .map(({ storage }) => storage);
  const missing = missingDevices(cluster, node, config);
  if (storages.length === 0 && missing.length === 0) return undefined;
  return {
    ...(storages.length === 0 ? {} : { unavailable_storages: [...new Set(storages)].sort() }),
    ...(missing.length === 0 ? {} : { "unavailable-resources": missing }),
  };
}

function missingDevices(cluster: Cluster, node: string, config: GuestConfig): string[] {
  return passedThrough(config.main).flatMap(([key, device]) => {
    const name = device.get("mapping");
    if (name === undefined) return [];
    const kind = key.startsWith("usb") ? "usb" : "pci";
    const found = mappedDevices(cluster.state.mappings?.[`${kind}/${name}`], node);
    return found.length === 0 ? [key] : [];
  });
}

/** Hardware of the host that the guest cannot take along. */
function localDevices(config: GuestConfig, isRunning: boolean): string[] {
  const devices = passedThrough(config.main)
    .filter(([, device]) => device.get("host")?.toLowerCase() !== "spice")
    .filter(([key, device]) => !device.has("mapping") || key.startsWith("usb") || isRunning)
    .map(([key]) => key);
  const ports = [...config.main]
    .filter(([key, value]) => /^(serial|parallel)\d+$/.test(key) && value !== "socket")
    .map(([key]) => key);
  return [...devices, ...ports].sort();
}

/** POST …/migrate: the worker runs on the source; the config moves at its end. */
export function* migrateVm(call: Call): Process<unknown> {
  const { cluster, node, parameters } = call;
  const { target = "" } = parameters;
  if (target === node) throw parameterError({ target: "target is local node." });
  cluster.demandQuorum();
  if (cluster.findNode(target) === undefined)
    throw new PveError(`no such cluster node '${target}'`);
  demandRootFor(call, "force", "migration_type", "migration_network");
  const vmid = vmidOf(call);
  const config = cluster.readGuest(node, vmid);
  demandUnlocked(config);
  yield* cluster.step("migrate request");
  const isOnline = cluster.isRunning(node, vmid);
  if (isOnline && !isSet(parameters["online"])) {
    throw new PveError("can't migrate running VM without --online");
  }
  demandStorages(call, config, target);
  const wish = { target };
  const queued = queueHa(call, { type: "hamigrate", verb: "migration", wish });
  if (queued !== undefined) return queued;
  return fork(call, { type: "qmigrate" }, (task) => {
    const options = {
      isOnline: isSet(parameters["online"]) && isOnline,
      withLocalDisks: isSet(parameters["with-local-disks"]),
      storageMap: parameters["targetstorage"],
      isForced: isSet(parameters["force"]),
    };
    return migrateGuest({ cluster, node, vmid, target, log: task.log }, options);
  });
}

/** Every drive's storage must be on both nodes, or what it is mapped to on the target. */
function demandStorages(call: Call, config: GuestConfig, target: string): void {
  const { cluster, caller, parameters } = call;
  const map = parameters["targetstorage"];
  for (const [, { file }] of drivesOf(config.main)) {
    if (!/^[a-z][\w.-]*:/i.test(file)) continue;
    const { storage } = parseVolumeId(file);
    usableStorage(cluster, storage, call.node);
    const other = storageFor(map, storage);
    const found = usableStorage(cluster, other, target);
    if (map === undefined || other === storage) continue;
    const privileges = ["Datastore.AllocateSpace"];
    cluster.rights.demand(caller, `/storage/${other}`, { privileges });
    if (!hasContent(found, "images")) {
      throw parameterError({ storage: `storage '${other}' does not support vm images` });
    }
  }
}

/** Moves a guest with its local disks, under its flock. */
export function* migrateGuest(migration: Migration, options: MigrationOptions): Process<void> {
  const { node, vmid, log } = migration;
  const outcome = { hasProblems: false };
  try {
    yield* locked(guestLock(node, vmid), () => migrate(migration, options, outcome));
  } catch (error) {
    log(`ERROR: migration aborted (duration 00:00:00): ${messageOf(error)}`);
    throw new PveError("migration aborted");
  }
  if (outcome.hasProblems) throw new PveError("migration problems");
  log("migration finished successfully (duration 00:00:01)");
}

function* migrate(
  migration: Migration,
  options: MigrationOptions,
  outcome: { hasProblems: boolean },
): Process<void> {
  const { cluster, node, vmid } = migration;
  const config = copyConfig(cluster.readGuest(node, vmid));
  demandUnlocked(config);
  const isRunning = cluster.isRunning(node, vmid);
  if (isRunning && !options.isOnline) {
    throw new PveError("can't migrate running VM without --online");
  }
  demandMovable(migration, config, options);
  demandConnection(migration);
  config.main.set("lock", "migrate");
  cluster.writeGuest(node, vmid, config);
  const copies: Copied[] = [];
  try {
    yield* cluster.step("locked for migration");
    for (const found of scanVolumes(migration, config, options)) {
      copies.push(yield* copyAcross(migration, found, options));
    }
    demandConnection(migration);
  } catch (error) {
    migration.log(`ERROR: ${messageOf(error)}`);
    config.main.delete("lock");
    cluster.writeGuest(node, vmid, config);
    freeCopies(migration, copies);
    throw error;
  }
  yield* handOver(migration, { config, copies, outcome });
}

function demandMovable(
  { cluster, node, vmid, target }: Migration,
  config: GuestConfig,
  options: MigrationOptions,
): void {
  const isRunning = cluster.isRunning(node, vmid);
  const mapped = passedThrough(config.main).filter(([, device]) => device.has("mapping"));
  const names = new Set(mapped.map(([key]) => key));
  const blocking = localDevices(config, isRunning).filter((key) => !names.has(key));
  if (blocking.length > 0 && (isRunning || options.isForced !== true)) {
    throw new PveError(`can't migrate VM which uses local devices: ${blocking.join(", ")}`);
  }
  const missing = missingDevices(cluster, target, config);
  if (missing.length > 0) {
    throw new PveError(
      `can't migrate to '${target}': missing mapped devices ${missing.join(", ")}`,
    );
  }
  if (!isRunning || mapped.length === 0) return;
  const all = mapped.map(([key, device]) => `${key}:${device.get("mapping") ?? ""}`);
  const what = "can't live migrate running VM which uses following mapped devices";
  throw new PveError(`${what}: ${all.sort().join(", ")}`);
}

function demandConnection({ cluster, target }: Migration): void {
  if (cluster.findNode(target)?.isOnline === true) return;
  throw new PveError("Can't connect to destination address using public key");
}

/** From here there is no way back: the config is the target's, then the old copies go. */
function* handOver(
  { cluster, node, vmid, target, log }: Migration,
  moved: {
    readonly config: GuestConfig;
    readonly copies: readonly Copied[];
    readonly outcome: { hasProblems: boolean };
  },
): Process<void> {
  const { config, copies, outcome } = moved;
  renameVolumes(config, copies);
  yield* cluster.step("move config");
  const machine = cluster.machine(vmid);
  cluster.setMachine(node, vmid, undefined);
  cluster.writeGuest(target, vmid, config);
  if (machine !== undefined) cluster.setMachine(target, vmid, machine);
  for (const { volume, copy } of copies) cluster.heirs.set(volume, copy);
  for (const { volid, volume, source } of copies) {
    try {
      yield* cluster.step(`remove ${volid}`);
      const at = source.indexOf(volume);
      if (at >= 0) source.splice(at, 1);
    } catch (error) {
      log(`ERROR: removing local copy of '${volid}' failed - ${messageOf(error)}`);
      outcome.hasProblems = true;
    }
  }
  yield* cluster.step("clear migrate lock");
  config.main.delete("lock");
  cluster.writeGuest(target, vmid, config);
}
