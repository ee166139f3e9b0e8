import { copyConfig, type GuestConfig, type Section } from "../config-file.ts";
import { type Call, demandUnlocked, fork, guestLock, isSet, vmidOf } from "../endpoint.ts";
import { PveError } from "../errors.ts";
import { locked, type Process } from "../process.ts";
import { findVolume } from "../storage/storages.ts";
import { drivesOf, isCdrom } from "./drive.ts";
import { typedSection } from "./read.ts";

const notCopied = /^(lock|parent|snaptime|unused\d+|snapstate)$/;

/** GET …/snapshot */
export function* listSnapshots(call: Call): Process<unknown> {
  const { cluster, node } = call;
  const vmid = vmidOf(call);
  const config = cluster.readGuest(node, vmid);
  yield* cluster.step("list snapshots");
  const rows = [...config.snapshots].map(([name, section]) => ({
    name,
    description: section.get("description") ?? "",
    snaptime: Number(section.get("snaptime") ?? "0"),
    vmstate: section.has("vmstate") ? 1 : 0,
    ...(section.has("parent") ? { parent: section.get("parent") } : {}),
  }));
  const current = {
    name: "current",
    description: "You are here!",
    digest: cluster.digest(node, vmid),
    running: cluster.isRunning(node, vmid) ? 1 : 0,
    ...(config.main.has("parent") ? { parent: config.main.get("parent") } : {}),
  };
  return [...rows, current];
}

/** POST …/snapshot */
export function* createSnapshot(call: Call): Process<unknown> {
  const { cluster, node, parameters } = call;
  const { snapname: name = "" } = parameters;
  if (name === "current" || name === "pending") {
    throw new PveError(`unable to use snapshot name '${name}' (reserved name)`);
  }
  if (cluster.quirks.snapshotLoadsFirst) cluster.readGuest(node, vmidOf(call));
  yield* cluster.step("snapshot request");
  return fork(call, { type: "qmsnapshot" }, (task) => {
    return locked(guestLock(node, vmidOf(call)), () => snapshotWorker(call, name, task.log));
  });
}

function* snapshotWorker(call: Call, name: string, log: (line: string) => void): Process<void> {
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  const config = copyConfig(cluster.readGuest(node, vmid));
  demandUnlocked(config);
  if (config.main.get("template") === "1")
    throw new PveError("you can't take a snapshot if it's a template");
  if (config.snapshots.has(name)) throw new PveError(`snapshot name '${name}' already used`);
  demandSnapshotable(call, config);
  const section: Section = new Map([...config.main].filter(([key]) => !notCopied.test(key)));
  section.delete("description");
  if (parameters["description"] !== undefined)
    section.set("description", parameters["description"]);
  section.set("snaptime", String(Math.floor(cluster.clock.nowMs() / 1000)));
  const parent = config.main.get("parent");
  if (parent !== undefined) section.set("parent", parent);
  section.set("snapstate", "prepare");
  config.snapshots.set(name, section);
  config.main.set("lock", "snapshot");
  cluster.writeGuest(node, vmid, config);
  for (const [key, drive] of drivesOf(config.main).filter(([, each]) => !isCdrom(each))) {
    yield* cluster.step(`snapshot ${key}`);
    log(`snapshotting 'drive-${key}' (${drive.file})`);
    const { volume } = findVolume(cluster, node, drive.file);
    if (volume !== undefined) volume.snapshots = [...(volume.snapshots ?? []), name];
  }
  yield* cluster.step("commit snapshot");
  section.delete("snapstate");
  config.main.delete("lock");
  config.main.set("parent", name);
  cluster.writeGuest(node, vmid, config);
}

/** Files that hold no snapshots of their own, raw ones, rule the feature out. */
function demandSnapshotable({ cluster, node }: Call, config: GuestConfig): void {
  for (const [, drive] of drivesOf(config.main).filter(([, each]) => !isCdrom(each))) {
    const { storage, volume } = findVolume(cluster, node, drive.file);
    const canSnapshot =
      volume?.format === "qcow2" || ["zfspool", "lvmthin", "rbd"].includes(storage.type);
    if (!canSnapshot) throw new PveError("snapshot feature is not available");
  }
}

function snapshotOf(config: GuestConfig, name: string): Section {
  const section = config.snapshots.get(name);
  if (section === undefined) throw new PveError(`snapshot '${name}' does not exist`);
  return section;
}

/** POST …/snapshot/{snapname}/rollback */
export function* rollback(call: Call): Process<unknown> {
  const { cluster, node, parameters } = call;
  const { snapname: name = "" } = parameters;
  yield* cluster.step("rollback request");
  return fork(call, { type: "qmrollback" }, () => {
    return locked(guestLock(node, vmidOf(call)), () => rollbackWorker(call, name));
  });
}

function* rollbackWorker({ cluster, node, parameters }: Call, name: string): Process<void> {
  const vmid = Number(parameters["vmid"]);
  const config = copyConfig(cluster.readGuest(node, vmid));
  const section = snapshotOf(config, name);
  demandUnlocked(config);
  config.main.set("lock", "rollback");
  cluster.writeGuest(node, vmid, config);
  yield* cluster.step("stop QEMU");
  cluster.setMachine(node, vmid, undefined);
  yield* cluster.step("roll volumes back");
  config.main = new Map(
    [...section].filter(([key]) => !/^(snaptime|snapstate|description|vmstate)$/.test(key)),
  );
  config.main.set("parent", name);
  config.main.set("vmgenid", cluster.random.uuid());
  cluster.writeGuest(node, vmid, config);
}

/** DELETE …/snapshot/{snapname} */
export function* deleteSnapshot(call: Call): Process<unknown> {
  const { cluster, node, parameters } = call;
  const { snapname: name = "" } = parameters;
  yield* cluster.step("delete snapshot request");
  return fork(call, { type: "qmdelsnapshot" }, () => {
    return locked(guestLock(node, vmidOf(call)), () => deleteWorker(call, name));
  });
}

function* deleteWorker({ cluster, node, parameters }: Call, name: string): Process<void> {
  const vmid = Number(parameters["vmid"]);
  const config = copyConfig(cluster.readGuest(node, vmid));
  const section = snapshotOf(config, name);
  demandUnlocked(config, isSet(parameters["force"]));
  config.main.set("lock", "snapshot-delete");
  cluster.writeGuest(node, vmid, config);
  for (const [key, drive] of drivesOf(section).filter(([, each]) => !isCdrom(each))) {
    yield* cluster.step(`delete snapshot of ${key}`);
    const { volume } = findVolume(cluster, node, drive.file);
    if (volume !== undefined)
      volume.snapshots = (volume.snapshots ?? []).filter((each) => each !== name);
  }
  const parent = section.get("parent");
  config.snapshots.delete(name);
  config.main.delete("lock");
  for (const each of [config.main, ...config.snapshots.values()]) {
    if (each.get("parent") !== name) continue;
    if (parent === undefined) each.delete("parent");
    else each.set("parent", parent);
  }
  yield* cluster.step("write config");
  cluster.writeGuest(node, vmid, config);
}

/** GET …/snapshot/{snapname}/config */
export function snapshotConfig(call: Call): unknown {
  const { cluster, node, parameters } = call;
  const config = cluster.readGuest(node, vmidOf(call));
  return typedSection(cluster, snapshotOf(config, parameters["snapname"] ?? ""));
}

/** PUT …/snapshot/{snapname}/config */
export function* describeSnapshot(call: Call): Process<unknown> {
  const { cluster, node, parameters } = call;
  const vmid = vmidOf(call);
  return yield* locked(guestLock(node, vmid), function* () {
    const config = copyConfig(cluster.readGuest(node, vmid));
    const section = snapshotOf(config, parameters["snapname"] ?? "");
    demandUnlocked(config);
    yield* cluster.step("describe snapshot");
    const { description } = parameters;
    if (description !== undefined) section.set("description", description);
    cluster.writeGuest(node, vmid, config);
    return null;
  });
}
