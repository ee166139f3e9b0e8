import { copyConfig, type GuestConfig, type Section } from "../config-file.ts";
import { type Call, demandUnlocked, guestLock, isSet, vmidOf } from "../endpoint.ts";
import { messageOf, PveError } from "../errors.ts";
import { locked, type Process } from "../process.ts";
import { free, type Worker } from "../storage/operations.ts";
import { findVolume } from "../storage/storages.ts";
import { addUnused } from "./apply.ts";
import { drivesOf, isCdrom, parseSize } from "./drive.ts";
import { guestOf } from "./guest.ts";

export function snapshotOf(config: GuestConfig, name: string): Section {
  const section = config.snapshots.get(name);
  if (section === undefined) throw new PveError(`snapshot '${name}' does not exist`);
  return section;
}

/** Takes a guest back: its disks first, then its config, then its memory if that was saved. */
export function* rollbackWorker(
  call: Call,
  name: string,
  log: (line: string) => void,
): Process<void> {
  const { cluster, node } = call;
  const vmid = vmidOf(call);
  const section = yield* locked(guestLock(node, vmid), () => prepare(call, name));
  for (const [key, drive] of drivesOf(section).filter(([, each]) => !isCdrom(each))) {
    yield* cluster.step(`roll ${key} back`);
    const { volume } = findVolume(cluster, node, drive.file);
    const sizeBytes = parseSize(drive.options.get("size") ?? "");
    if (volume !== undefined && sizeBytes !== undefined) volume.sizeBytes = sizeBytes;
  }
  yield* locked(guestLock(node, vmid), () => takeOver(call, name, log));
}

function* prepare(call: Call, name: string): Process<Section> {
  const { cluster, node } = call;
  const vmid = vmidOf(call);
  const config = copyConfig(cluster.readGuest(node, vmid));
  if (config.main.get("template") === "1") {
    throw new PveError("you can't rollback if vm is a template");
  }
  const section = snapshotOf(config, name);
  demandPossible(call, section, name);
  const state = section.get("snapstate");
  if (state !== undefined) {
    throw new PveError(`unable to rollback to incomplete snapshot (snapstate = ${state})`);
  }
  demandUnlocked(config);
  yield* cluster.step("stop QEMU");
  cluster.setMachine(node, vmid, undefined);
  config.main.set("lock", "rollback");
  cluster.writeGuest(node, vmid, config);
  return section;
}

/** ZFS can go back to the newest snapshot only. */
function demandPossible({ cluster, node }: Call, section: Section, name: string): void {
  for (const [, drive] of drivesOf(section).filter(([, each]) => !isCdrom(each))) {
    const { storage, volume } = findVolume(cluster, node, drive.file);
    const snapshots = volume?.snapshots ?? [];
    if (storage.type !== "zfspool" || snapshots.at(-1) === name) continue;
    const why = snapshots.includes(name)
      ? `'${name}' is not most recent snapshot on '${drive.file}'`
      : `snapshot '${name}' does not exist on '${drive.file}'`;
    throw new PveError(`can't rollback, ${why}`);
  }
}

function* takeOver(call: Call, name: string, log: (line: string) => void): Process<void> {
  const { cluster, node } = call;
  const vmid = vmidOf(call);
  const config = copyConfig(cluster.readGuest(node, vmid));
  const section = snapshotOf(config, name);
  if (config.main.get("lock") !== "rollback") throw new PveError("got wrong lock");
  yield* cluster.step("apply snapshot");
  goBack(config, section);
  config.main.set("parent", name);
  if (config.main.has("vmgenid")) config.main.set("vmgenid", cluster.random.uuid());
  cluster.writeGuest(node, vmid, config);
  if (!section.has("vmstate")) return;
  log("resuming from saved state");
  const startedMs = cluster.clock.nowMs();
  const guest = guestOf(cluster, node, vmid);
  const machine = { pid: cluster.nextPid(), startedMs, isPaused: false };
  cluster.setMachine(node, vmid, { ...machine, ...(guest === undefined ? {} : { guest }) });
}

/** The description and the unused volumes are not part of what is taken back. */
function goBack(config: GuestConfig, section: Section): void {
  const old = config.main;
  const dropped = /^(snaptime|snapstate|description|vmstate|running\w+)$/;
  config.main = new Map([...section].filter(([key]) => !dropped.test(key)));
  for (const [key, value] of old) {
    if (key === "description" || /^unused\d+$/.test(key)) config.main.set(key, value);
  }
  const kept = new Set(drivesOf(section).map(([, { file }]) => file));
  for (const [, drive] of drivesOf(old)) {
    if (!isCdrom(drive) && !kept.has(drive.file)) addUnused(config, drive.file);
  }
}

export interface Removal {
  readonly name: string;
  /** A snapshot that was not finished: only these of its drives have one, and its lock is set. */
  readonly only?: readonly string[];
}

/** Removes a snapshot, drive by drive: what is gone is noted down, so that it can be repeated. */
export function* removeSnapshot(call: Call, worker: Worker, removal: Removal): Process<void> {
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  const isForced = isSet(parameters["force"]) || removal.only !== undefined;
  yield* locked(guestLock(node, vmid), () => mark(call, removal));
  const section = snapshotOf(cluster.readGuest(node, vmid), removal.name);
  const state = section.get("vmstate");
  if (state !== undefined) yield* tolerate(isForced, worker, free(cluster, worker, state));
  for (const [key, drive] of drivesOf(section).filter(([, each]) => !isCdrom(each))) {
    if (removal.only !== undefined && !removal.only.includes(key)) continue;
    yield* cluster.step(`delete snapshot of ${key}`);
    const { volume } = findVolume(cluster, node, drive.file);
    if (volume === undefined) continue;
    volume.snapshots = (volume.snapshots ?? []).filter((each) => each !== removal.name);
    if (isForced) continue;
    yield* locked(guestLock(node, vmid), () => forgetDrive(call, removal.name, key));
  }
  yield* locked(guestLock(node, vmid), () => forget(call, section, removal));
}

function* mark({ cluster, node, parameters }: Call, { name, only }: Removal): Process<void> {
  const vmid = Number(parameters["vmid"]);
  const config = copyConfig(cluster.readGuest(node, vmid));
  const section = snapshotOf(config, name);
  if (only === undefined) {
    demandUnlocked(config);
    if (config.main.get("template") === "1") {
      throw new PveError("you can't delete a snapshot if vm is a template");
    }
    config.main.set("lock", "snapshot-delete");
  }
  section.set("snapstate", "delete");
  yield* cluster.step("mark snapshot");
  cluster.writeGuest(node, vmid, config);
}

function* tolerate(isForced: boolean, worker: Worker, body: Process<void>): Process<void> {
  try {
    yield* body;
  } catch (error) {
    if (!isForced) throw error;
    worker.log(messageOf(error));
  }
}

function* forgetDrive(
  { cluster, node, parameters }: Call,
  name: string,
  key: string,
): Process<void> {
  const vmid = Number(parameters["vmid"]);
  const config = copyConfig(cluster.readGuest(node, vmid));
  snapshotOf(config, name).delete(key);
  yield* cluster.step(`forget ${key}`);
  cluster.writeGuest(node, vmid, config);
}

/** Takes the section out; volumes that only it named become unused. */
function* forget(
  { cluster, node, parameters }: Call,
  section: Section,
  { name }: Removal,
): Process<void> {
  const vmid = Number(parameters["vmid"]);
  yield* cluster.step("write config");
  const config = copyConfig(cluster.readGuest(node, vmid));
  const parent = section.get("parent");
  config.snapshots.delete(name);
  config.main.delete("lock");
  for (const each of [config.main, ...config.snapshots.values()]) {
    if (each.get("parent") !== name) continue;
    if (parent === undefined) each.delete("parent");
    else each.set("parent", parent);
  }
  for (const [, drive] of drivesOf(section)) {
    if (!isCdrom(drive)) addUnused(config, drive.file);
  }
  cluster.writeGuest(node, vmid, config);
}
