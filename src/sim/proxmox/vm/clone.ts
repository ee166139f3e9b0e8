import type { Cluster } from "../cluster.ts";
import { copyConfig, emptyConfig, type GuestConfig, type Section } from "../config-file.ts";
import { type Call, demandUnlocked, fork, guestLock, isSet, vmidOf } from "../endpoint.ts";
import { forbidden, messageOf, PveError, prefixed } from "../errors.ts";
import { locked, type Process } from "../process.ts";
import { hasFeature } from "../storage/features.ts";
import { formatOf, isFileBased, parseVolumeId } from "../storage/names.ts";
import { allocate, copyInto, linkClone, type Worker } from "../storage/operations.ts";
import { findVolume, isShared, storageConfig, usableStorage } from "../storage/storages.ts";
import type { Task } from "../tasks.ts";
import { addToPool, cleanUp } from "./create.ts";
import {
  type Drive,
  drivesOf,
  isCdrom,
  isCloudinit,
  parseDrive,
  printDrive,
  printSize,
  withOptions,
} from "./drive.ts";
import { randomAddress } from "./net.ts";
import { demandBridgeRights, demandDeviceRights, demandImages } from "./rights.ts";

/** A clone under way. */
interface Cloning {
  readonly call: Call;
  readonly source: number;
  readonly target: number;
  /** The section that is copied: the current one, or a snapshot's. */
  readonly from: Section;
  readonly isFull: boolean;
  /** Whether the source ran when the clone was asked for. */
  readonly isRunning: boolean;
}

/**
 * POST …/clone: looks, and forks. Only the worker takes the locks and writes a placeholder under
 * the new id: between the reply and that the id is still free.
 */
export function* cloneVm(call: Call): Process<unknown> {
  const { cluster, node } = call;
  const source = vmidOf(call);
  yield* cluster.step("clone request");
  const isRunning = cluster.isRunning(node, source);
  check(call, isRunning);
  return fork(call, { type: "qmclone", id: String(source) }, (task) => {
    // Clones of a stopped guest share its lock; a running one is cloned alone.
    const own = guestLock(node, source, { timeoutMs: 1_000, isShared: !isRunning });
    const target = Number(call.parameters["newid"]);
    return locked(own, () => {
      return locked(guestLock(node, target, { timeoutMs: 1_000 }), () => {
        return cloneWorker(check(call, isRunning), task);
      });
    });
  });
}

/** Throws unless it can be cloned: looked at when it is asked for, and again under the locks. */
function check(call: Call, isRunning: boolean): Cloning {
  const { cluster, node, parameters } = call;
  const source = vmidOf(call);
  demandPlace(call);
  cluster.demandQuorum();
  const config = cluster.readGuest(node, source);
  demandUnlocked(config);
  if (cluster.isRunning(node, source) !== isRunning) throw new PveError("unexpected state change");
  const from = sectionOf(config, parameters["snapname"]);
  const isTemplate = config.main.get("template") === "1";
  const isFull = parameters["full"] === undefined ? !isTemplate : isSet(parameters["full"]);
  const target = Number(parameters["newid"]);
  const cloning = { call, source, target, from, isFull, isRunning };
  demandCloneable(cloning);
  return cloning;
}

function demandPlace({ cluster, node, parameters }: Call): void {
  const { pool, target } = parameters;
  if (pool !== undefined && !cluster.state.pools.some(({ poolid }) => poolid === pool)) {
    throw forbidden(`Permission check failed (pool '${pool}' does not exist)`);
  }
  if (target !== undefined && target !== node && cluster.findNode(target) === undefined) {
    throw new PveError(`no such cluster node '${target}'`);
  }
}

function sectionOf(config: GuestConfig, snapshot: string | undefined): Section {
  if (snapshot === undefined) return config.main;
  const section = config.snapshots.get(snapshot);
  if (section === undefined) throw new PveError(`snapshot '${snapshot}' does not exist`);
  return section;
}

function demandCloneable(cloning: Cloning): void {
  const { call, from, isFull, target } = cloning;
  const { cluster, parameters, node } = call;
  for (const name of ["storage", "format"]) {
    if (!isFull && parameters[name] !== undefined) {
      throw new PveError(`parameter '${name}' not allowed for linked clones`);
    }
  }
  for (const [, drive] of drivesOf(from)) if (isVolume(drive)) demandTarget(call, drive, isFull);
  const settings = Object.fromEntries(from);
  demandDeviceRights(call, target, settings);
  demandBridgeRights(call, settings);
  demandReachable(cloning);
  if (cluster.hasGuest(node, target)) {
    throw new PveError(`unable to create VM ${target}: config file already exists`);
  }
  demandNoLiveTpm(cloning);
  for (const [key, drive] of drivesOf(from)) demandFeature(cloning, key, drive);
}

function isVolume({ file }: Drive): boolean {
  return file.includes(":") && !file.startsWith("/");
}

function demandNoLiveTpm({ call, from, isFull, isRunning }: Cloning): void {
  const isLive = isRunning && call.parameters["snapname"] === undefined;
  if (!isFull || !isLive || !from.has("tpmstate0")) return;
  throw new PveError("cannot clone TPM state while VM is running");
}

function demandTarget(call: Call, drive: Drive, isFull: boolean): void {
  const { cluster, parameters } = call;
  const id = parameters["storage"] ?? parseVolumeId(drive.file).storage;
  const privileges = ["Datastore.AllocateSpace"];
  cluster.rights.demand(call.caller, `/storage/${id}`, { privileges });
  if (cluster.quirks.checksTargetStorage && isFull && !isCdrom(drive)) demandImages(call, id);
}

/** A clone on another node needs its disks there: old and new ones on shared storages. */
function demandReachable({ call, from }: Cloning): void {
  const { cluster, parameters, node } = call;
  const { target, storage } = parameters;
  if (target === undefined || target === node) return;
  if (storage !== undefined && !isShared(usableStorage(cluster, storage, target))) {
    throw new PveError(`can't clone to non-shared storage '${storage}'`);
  }
  const isLocal = drivesOf(from).some(([, { file }]) => {
    return file.includes(":") && !isShared(storageConfig(cluster, parseVolumeId(file).storage));
  });
  if (isLocal) throw new PveError(`can't clone VM to node '${target}' (VM uses local storage)`);
}

function demandFeature({ call, isFull }: Cloning, key: string, drive: Drive): void {
  if (!isCopiedDrive(drive)) return;
  const { cluster, node, parameters } = call;
  const isCopied = isFull || isAlwaysCopied(key, drive);
  const { storage, volume } = findVolume(cluster, node, drive.file);
  if (volume === undefined) return;
  const snapshot = parameters["snapname"];
  if (hasFeature(storage, volume, { feature: isCopied ? "copy" : "clone", snapshot })) return;
  const kind = isCopied ? "Full" : "Linked";
  const of = snapshot === undefined ? "" : " a snapshot of";
  const isOld = cluster.state.release === "7.4";
  const what = isOld ? ` drive '${key}'` : `${of} '${drive.file}' (${key})`;
  throw new PveError(`${kind} clone feature is not supported for${what}`);
}

/** Media are shared with the source; everything else is the clone's own. */
function isCopiedDrive(drive: Drive): boolean {
  return isVolume(drive) && (!isCdrom(drive) || isCloudinit(drive));
}

/** What is different in every guest is copied in a linked clone too. */
function isAlwaysCopied(key: string, drive: Drive): boolean {
  return isCloudinit(drive) || key === "tpmstate0";
}

function* cloneWorker(cloning: Cloning, task: Task): Process<void> {
  const { call, source, target } = cloning;
  const { cluster, node } = call;
  if (cluster.quirks.logsTargets) task.log(`creating a clone of VM ${source} with ID ${target}`);
  const worker: Worker = { node, log: task.log };
  const made: string[] = [];
  yield* cluster.step("reservation");
  if (cluster.nodeOfGuest(target) !== undefined) {
    const file = `/etc/pve/nodes/${node}/qemu-server/${target}.conf`;
    throw new PveError(`close (rename) atomic file '${file}' failed: File exists`);
  }
  cluster.writeText(node, target, "# qmclone temporary file\nlock: clone\n");
  try {
    yield* copyGuest(cloning, worker, made);
  } catch (error) {
    yield* cleanUp(cluster, worker, made);
    // Only the file on this node goes: one that was handed over already stays, without its disks.
    if (cluster.hasGuest(node, target)) cluster.removeGuest(target);
    throw prefixed("clone failed: ", messageOf(error));
  }
}

function* copyGuest(cloning: Cloning, worker: Worker, made: string[]): Process<void> {
  const { call, source, target, from } = cloning;
  const { cluster, node, parameters } = call;
  const config = freshCopy(cloning);
  for (const [key, drive] of drivesOf(from)) {
    const copied = yield* copyDrive(cloning, worker, { key, drive, made });
    config.main.set(key, printDrive(copied));
    // The marks are in the file from the first disk on, with the lock still set.
    config.main.set("lock", "clone");
    cluster.writeGuest(node, target, config);
    yield* cluster.step(`cloned ${key} of ${source}`);
  }
  config.main.delete("lock");
  yield* cluster.step("write config");
  cluster.writeGuest(node, target, config);
  const elsewhere = parameters["target"];
  if (elsewhere !== undefined && elsewhere !== node) {
    yield* cluster.step("hand config over");
    cluster.writeGuest(elsewhere, target, config);
  }
  yield* cluster.step("add to pool");
  addToPool(cluster, target, parameters["pool"]);
}

/** What a clone does not inherit: its identity, its addresses, its history. */
function freshCopy({ call, from, source }: Cloning): GuestConfig {
  const { cluster, parameters } = call;
  const { main } = copyConfig({ ...emptyConfig(), main: from });
  const dropped =
    /^(template|parent|snaptime|snapstate|vmstate|runningmachine|runningcpu|unused\d+|lock)$/;
  for (const key of [...main.keys()].filter((name) => dropped.test(name))) main.delete(key);
  renewAddresses(cluster, main);
  main.set("smbios1", withNewUuid(main.get("smbios1") ?? "", cluster.random.uuid()));
  if (main.has("vmgenid")) main.set("vmgenid", cluster.random.uuid());
  const { name = "", description = "" } = parameters;
  main.set("name", name === "" ? `Copy-of-VM-${main.get("name") ?? source}` : name);
  if (description !== "") main.set("description", description);
  return { ...emptyConfig(), main };
}

function renewAddresses(cluster: Cluster, main: Section): void {
  for (const [key, text] of main) {
    if (!/^net\d+$/.test(key)) continue;
    main.set(key, text.replace(/=[0-9A-Fa-f:]{17}/, `=${randomAddress(cluster)}`));
  }
}

function withNewUuid(smbios: string, uuid: string): string {
  const others = smbios.split(",").filter((part) => part !== "" && !part.startsWith("uuid="));
  return [`uuid=${uuid}`, ...others].join(",");
}

function* copyDrive(
  { call, target, isFull }: Cloning,
  worker: Worker,
  { key, drive, made }: { readonly key: string; readonly drive: Drive; readonly made: string[] },
): Process<Drive> {
  if (!isCopiedDrive(drive)) return drive;
  if (!isFull && !isAlwaysCopied(key, drive)) {
    worker.log(`create linked clone of drive ${key} (${drive.file})`);
    const volid = yield* linkClone(call.cluster, worker, { base: drive.file, vmid: target });
    made.push(volid);
    return { file: volid, options: drive.options };
  }
  worker.log(`create full clone of drive ${key} (${drive.file})`);
  const { storage, format } = call.parameters;
  const where = isFull ? { storage, format } : {};
  return yield* copyVolume(call, worker, { drive, made, vmid: target, ...where });
}

/** A full copy of a drive's volume, on another storage or in another format if asked for. */
export function* copyVolume(
  call: Call,
  worker: Worker,
  copy: {
    readonly drive: Drive;
    readonly vmid: number;
    readonly made: string[];
    readonly storage?: string | undefined;
    readonly format?: string | undefined;
  },
): Process<Drive> {
  const { cluster, node } = call;
  const { drive, vmid, made } = copy;
  const source = findVolume(cluster, node, drive.file);
  if (source.volume === undefined) throw new PveError(`volume '${drive.file}' does not exist`);
  const storage = copy.storage ?? source.storage.storage;
  const isFile = isFileBased(storageConfig(cluster, storage));
  const format = isFile ? formatOf(copy.format ?? source.volume.format) : "raw";
  const { sizeBytes, data } = source.volume;
  const fixed = isCloudinit(drive)
    ? { file: `vm-${vmid}-cloudinit${isFile ? `.${format}` : ""}` }
    : {};
  const volid = yield* allocate(cluster, worker, { storage, vmid, format, sizeBytes, ...fixed });
  made.push(volid);
  if (cluster.quirks.logsTargets) worker.log(`allocated target volume '${volid}'`);
  if (!isCloudinit(drive)) {
    yield* copyInto(cluster, worker, {
      target: volid,
      sizeBytes,
      ...(data === undefined ? {} : { data }),
    });
  }
  return withOptions(
    { file: volid, options: parseDrive(printDrive(drive)).options },
    { size: printSize(sizeBytes) },
  );
}
