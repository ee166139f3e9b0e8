import type { Cluster } from "../cluster.ts";
import { copyConfig, emptyConfig, type GuestConfig, type Section } from "../config-file.ts";
import { type Call, demandUnlocked, fork, guestLock, isSet, vmidOf } from "../endpoint.ts";
import { forbidden, messageOf, PveError, prefixed } from "../errors.ts";
import { locked, type Process } from "../process.ts";
import { formatOf, isFileBased, parseVolumeId } from "../storage/names.ts";
import { allocate, copyInto, linkClone, type Worker } from "../storage/operations.ts";
import { findVolume, isShared, storageConfig } from "../storage/storages.ts";
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
import { demandImages } from "./rights.ts";

/** A clone under way. */
interface Cloning {
  readonly call: Call;
  readonly source: number;
  readonly target: number;
  /** The section that is copied: the current one, or a snapshot's. */
  readonly from: Section;
  readonly isFull: boolean;
}

/** POST …/clone: writes a placeholder under the new id at once; a worker does the rest. */
export function* cloneVm(call: Call): Process<unknown> {
  const { cluster, node, parameters } = call;
  const source = vmidOf(call);
  const target = Number(parameters["newid"]);
  yield* cluster.step("clone request");
  // Looked at before the wait as well: a guest that is being made is refused at once.
  demandUnlocked(cluster.readGuest(node, source));
  const lock = sourceLock(cluster, node, source);
  return yield* locked(lock, function* () {
    const config = cluster.readGuest(node, source);
    demandUnlocked(config);
    const from = sectionOf(config, parameters["snapname"]);
    const isTemplate = config.main.get("template") === "1";
    const isFull = parameters["full"] === undefined ? !isTemplate : isSet(parameters["full"]);
    const cloning = { call, source, target, from, isFull };
    demandCloneable(cloning);
    yield* reserve(cluster, node, target);
    return fork(call, { type: "qmclone", id: String(source) }, (task) =>
      cloneWorker(cloning, task),
    );
  });
}

/** Clones of a stopped guest share its lock; a running one is cloned alone. */
function sourceLock(cluster: Cluster, node: string, vmid: number): ReturnType<typeof guestLock> {
  return guestLock(node, vmid, { timeoutMs: 1_000, isShared: !cluster.isRunning(node, vmid) });
}

function sectionOf(config: GuestConfig, snapshot: string | undefined): Section {
  if (snapshot === undefined) return config.main;
  const section = config.snapshots.get(snapshot);
  if (section === undefined) throw new PveError(`snapshot '${snapshot}' does not exist`);
  return section;
}

function demandCloneable({ call, from, isFull, target }: Cloning): void {
  const { cluster, parameters, node } = call;
  const { pool } = parameters;
  if (pool !== undefined && !cluster.state.pools.some(({ poolid }) => poolid === pool)) {
    throw forbidden(`Permission check failed (pool '${pool}' does not exist)`);
  }
  for (const name of ["storage", "format"]) {
    if (!isFull && parameters[name] !== undefined) {
      throw new PveError(`parameter '${name}' not allowed for linked clones`);
    }
  }
  if (cluster.hasGuest(node, target)) {
    throw new PveError(`unable to create VM ${target}: config file already exists`);
  }
  for (const [, drive] of drivesOf(from)) {
    if (drive.file !== "none" && !drive.file.startsWith("/")) demandTarget(call, drive, isFull);
  }
}

function demandTarget(call: Call, drive: Drive, isFull: boolean): void {
  const { cluster, parameters } = call;
  const id = parameters["storage"] ?? parseVolumeId(drive.file).storage;
  const privileges = ["Datastore.AllocateSpace"];
  cluster.rights.demand(call.caller, `/storage/${id}`, { privileges });
  if (cluster.quirks.checksTargetStorage && isFull && !isCdrom(drive)) demandImages(call, id);
  demandReachable(call, drive);
}

/** A clone on another node needs its disks there. */
function demandReachable({ cluster, parameters, node }: Call, drive: Drive): void {
  const { target } = parameters;
  if (target === undefined || target === node) return;
  cluster.node(target);
  const { storage } = parseVolumeId(drive.file);
  if (isShared(storageConfig(cluster, storage))) return;
  throw new PveError("can't clone to non-shared storage '".concat(storage, "'"));
}

function* reserve(cluster: Cluster, node: string, target: number): Process<void> {
  yield* locked(guestLock(node, target, { timeoutMs: 1_000 }), function* () {
    yield* cluster.step("reservation");
    const home = cluster.nodeOfGuest(target);
    if (home !== undefined) {
      throw new PveError(
        `unable to create VM ${target} - VM ${target} already exists on node '${home}'`,
      );
    }
    cluster.writeText(node, target, "# qmclone temporary file\nlock: clone\n");
  });
}

function* cloneWorker(cloning: Cloning, task: Task): Process<void> {
  const { call, source, target } = cloning;
  const { cluster, node } = call;
  if (cluster.quirks.logsTargets) task.log(`creating a clone of VM ${source} with ID ${target}`);
  const worker: Worker = { node, log: task.log };
  const lock = sourceLock(cluster, node, source);
  const made: string[] = [];
  try {
    yield* locked(lock, () => {
      return locked(guestLock(node, target, { timeoutMs: 1_000 }), () =>
        copyGuest(cloning, worker, made),
      );
    });
  } catch (error) {
    yield* cleanUp(cluster, worker, made);
    cluster.removeGuest(target);
    throw prefixed("clone failed: ", messageOf(error));
  }
}

function* copyGuest(
  { call, source, target, from, isFull }: Cloning,
  worker: Worker,
  made: string[],
): Process<void> {
  const { cluster, node, parameters } = call;
  const config = freshCopy(cluster, from, { target, parameters });
  for (const [key, drive] of drivesOf(from)) {
    const copied = yield* copyDrive({ call, target, worker, isFull }, key, { drive, made });
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
  if (elsewhere !== undefined) cluster.writeGuest(elsewhere, target, config);
  addToPool(cluster, target, parameters["pool"]);
}

/** What a clone does not inherit: its identity, its addresses, its history. */
function freshCopy(
  cluster: Cluster,
  from: Section,
  { target, parameters }: { target: number; parameters: Readonly<Record<string, string>> },
): GuestConfig {
  const { main } = copyConfig({ ...emptyConfig(), main: from });
  const dropped = /^(template|parent|snaptime|vmstate|runningmachine|runningcpu|unused\d+|lock)$/;
  for (const key of [...main.keys()].filter((name) => dropped.test(name))) main.delete(key);
  for (const [key, text] of main) {
    if (/^net\d+$/.test(key))
      main.set(key, text.replace(/=[0-9A-Fa-f:]{17}/, `=${randomAddress(cluster)}`));
  }
  const smbios = (main.get("smbios1") ?? "")
    .split(",")
    .filter((part) => part !== "" && !part.startsWith("uuid="));
  main.set("smbios1", [`uuid=${cluster.random.uuid()}`, ...smbios].join(","));
  main.set("vmgenid", cluster.random.uuid());
  const createdAt = Math.floor(cluster.clock.nowMs() / 1000);
  main.set("meta", `creation-qemu=${cluster.quirks.qemuVersion},ctime=${createdAt}`);
  const old = main.get("name");
  main.set(
    "name",
    parameters["name"] ?? (old === undefined ? `Copy-of-VM-${target}` : `Copy-of-VM-${old}`),
  );
  if (parameters["description"] !== undefined) main.set("description", parameters["description"]);
  return { ...emptyConfig(), main };
}

interface Copying {
  readonly call: Call;
  readonly target: number;
  readonly worker: Worker;
  readonly isFull: boolean;
}

function* copyDrive(
  copying: Copying,
  key: string,
  { drive, made }: { readonly drive: Drive; readonly made: string[] },
): Process<Drive> {
  const { call, target, worker, isFull } = copying;
  if (isCdrom(drive) && !isCloudinit(drive)) return drive;
  if (!isFull && !isCloudinit(drive)) {
    worker.log(`create linked clone of drive ${key} (${drive.file})`);
    const volid = yield* linkClone(call.cluster, worker, { base: drive.file, vmid: target });
    made.push(volid);
    return { file: volid, options: drive.options };
  }
  worker.log(`create full clone of drive ${key} (${drive.file})`);
  return yield* copyVolume(call, worker, {
    drive,
    made,
    vmid: target,
    ...(isFull
      ? {
          storage: call.parameters["storage"],
          format: call.parameters["format"],
        }
      : {}),
  });
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
