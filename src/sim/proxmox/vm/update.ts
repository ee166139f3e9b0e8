import { copyConfig, type GuestConfig } from "../config-file.ts";
import {
  type Call,
  demandDigest,
  demandRootFor,
  demandUnlocked,
  fork,
  guestLock,
  isSet,
  vmidOf,
} from "../endpoint.ts";
import { parameterError, PveError } from "../errors.ts";
import { locked, type Process } from "../process.ts";
import { propertyOf } from "../schema/check.ts";
import { splitList } from "../schema/formats.ts";
import { schemaOf } from "../schema/schema.ts";
import { free, type Worker } from "../storage/operations.ts";
import { type Applier, applyPending, write } from "./apply.ts";
import { cleanUp } from "./create.ts";
import {
  drivesOf,
  isCloudinit,
  isDriveKey,
  newCloudinitOf,
  parseDrive,
  volumesOfSection,
} from "./drive.ts";
import { hotplug } from "./hotplug.ts";
import { bootOrder } from "./hardware.ts";
import { makeDisks, type MadeDisks } from "./make-disks.ts";
import { withAddresses } from "./net.ts";
import { demandBridgeRights, demandDriveRights, demandOptionRights } from "./rights.ts";
import { demandSshKeys, sortedTags } from "./text.ts";

/** What an update asks for. */
interface Update {
  readonly settings: Readonly<Record<string, string>>;
  readonly deletes: readonly string[];
  readonly reverts: readonly string[];
  readonly isForced: boolean;
  readonly skipsLock: boolean;
}

const notOptions = new Set(
  "node vmid digest delete revert force skiplock background_delay import-working-storage idlist".split(
    " ",
  ),
);

/** PUT …/config: the caller waits until all is done. */
export function* updateVm(call: Call): Process<unknown> {
  const update = yield* prepare(call);
  const lock = guestLock(call.node, vmidOf(call));
  yield* locked(lock, () => apply(call, update, { node: call.node, log: () => undefined }));
  return null;
}

/** POST …/config: a worker does it. */
export function* updateVmLater(call: Call): Process<unknown> {
  const update = yield* prepare(call);
  const { cluster, node } = call;
  const lock = guestLock(node, vmidOf(call));
  const text = Object.entries(update.settings).map(([name, value]) => ` -${name} ${value}`);
  const line = `update VM ${vmidOf(call)}:${text.join("")}`;
  if (cluster.quirks.configLocksInWorker) {
    // Checked at once and again under the lock: what waits may find another file.
    demandCurrent(call, update);
    return fork(call, { type: "qmconfig" }, (task) => {
      task.log(line);
      return locked(lock, () => apply(call, update, { node, log: task.log }));
    });
  }
  return yield* locked(lock, function* () {
    demandCurrent(call, update);
    yield* cluster.step("fork");
    return fork(call, { type: "qmconfig" }, (task) => {
      task.log(line);
      return locked(lock, () => apply(call, update, { node, log: task.log }));
    });
  });
}

/** PUT …/unlink: the same as deleting options, by another name. */
export function* unlinkDisks(call: Call): Process<unknown> {
  const { idlist = "", force } = call.parameters;
  const { node = "", vmid = "" } = call.parameters;
  const parameters = { node, vmid, delete: idlist, ...(force === undefined ? {} : { force }) };
  return yield* updateVm({ ...call, parameters });
}

function* prepare(call: Call): Process<Update> {
  const { cluster, parameters, node } = call;
  const vmid = vmidOf(call);
  demandRootFor(call, "skiplock");
  const given = Object.entries(parameters).filter(([name]) => !notOptions.has(name));
  const settings = Object.fromEntries(given);
  const update: Update = {
    settings: prepared(call, settings),
    deletes: optionsIn(call, "delete"),
    reverts: optionsIn(call, "revert"),
    isForced: isSet(parameters["force"]),
    skipsLock: isSet(parameters["skiplock"]),
  };
  demandOptionRights(call, vmid, [...update.deletes, ...update.reverts, ...Object.keys(settings)]);
  demandDriveRights(call, vmid, settings);
  demandBridgeRights(call, settings);
  demandSshKeys(settings);
  yield* cluster.step("update request");
  const config = cluster.readGuest(node, vmid);
  if (cluster.quirks.configChecksLockFirst) demandCurrent(call, update);
  demandBootDevices(config, update);
  return update;
}

function prepared(call: Call, settings: Readonly<Record<string, string>>): Record<string, string> {
  const result = withAddresses(call.cluster, settings);
  if (result["tags"] !== undefined) result["tags"] = sortedTags(result["tags"]);
  return result;
}

/** The options named in a list; one that no guest can have is refused. */
function optionsIn(call: Call, name: string): string[] {
  const { release } = call.cluster.state;
  const schema = schemaOf(release);
  const method = schema.methods["PUT /nodes/{node}/qemu/{vmid}/config"];
  return splitList(call.parameters[name] ?? "").map((option) => {
    const isKnown = method !== undefined && propertyOf(schema, method, option) !== undefined;
    if (!isKnown && option !== "lock" && !/^unused\d+$/.test(option)) {
      throw parameterError({ [name]: `unknown option '${option}'` });
    }
    return option;
  });
}

function demandBootDevices(config: GuestConfig, { settings }: Update): void {
  if (settings["boot"] === undefined) return;
  for (const device of bootOrder(new Map([["boot", settings["boot"]]]))) {
    if (config.main.has(device) || config.pending.has(device) || device in settings) continue;
    throw parameterError({ boot: `invalid bootorder: device '${device}' does not exist'` });
  }
}

function demandCurrent(call: Call, { skipsLock }: Update): void {
  const config = call.cluster.readGuest(call.node, vmidOf(call));
  demandDigest(call);
  demandUnlocked(config, skipsLock);
}

/** Applies the update, one option after the other: a failure midway keeps the earlier ones. */
function* apply(call: Call, update: Update, worker: Worker): Process<void> {
  demandCurrent(call, update);
  const { cluster } = call;
  const applier: Applier = { cluster, worker, vmid: vmidOf(call) };
  const config = copyConfig(cluster.readGuest(call.node, applier.vmid));
  for (const key of update.reverts) {
    config.pending.delete(key);
    config.pendingDelete.delete(key);
  }
  for (const key of update.deletes) {
    yield* deleteOption(applier, config, { key, isForced: update.isForced });
    write(applier, config);
  }
  yield* setOptions(applier, config, update.settings);
  if (update.reverts.length > 0) write(applier, config);
  yield* cluster.step("apply pending");
  if (cluster.isRunning(worker.node, applier.vmid)) yield* hotplug(applier, config);
  else yield* applyPending(applier, config);
}

function* deleteOption(
  applier: Applier,
  config: GuestConfig,
  { key, isForced }: { readonly key: string; readonly isForced: boolean },
): Process<void> {
  if (!config.main.has(key)) {
    config.pending.delete(key);
    return;
  }
  if (/^unused\d+$/.test(key)) {
    yield* freeUnused(applier, config, key);
    return;
  }
  if (isDriveKey(key) && config.main.get("protection") === "1") {
    throw new PveError(`can't remove drive '${key}' - protection mode enabled`);
  }
  config.pending.delete(key);
  config.pendingDelete.set(key, { isForced });
  dropFromBoot(config, key);
}

/** A device that goes is not booted from any more. */
function dropFromBoot(config: GuestConfig, key: string): void {
  const order = bootOrder(new Map([...config.main, ...config.pending]));
  if (!order.includes(key)) return;
  const rest = order.filter((device) => device !== key);
  config.pending.set("boot", rest.length === 0 ? "" : `order=${rest.join(";")}`);
}

function* freeUnused(applier: Applier, config: GuestConfig, key: string): Process<void> {
  const volid = parseDrive(config.main.get(key) ?? "").file;
  if (config.main.get("protection") === "1") {
    throw new PveError(`can't remove unused disk '${key}' - protection mode enabled`);
  }
  const isUsed = [...config.snapshots.values()].some((part) =>
    volumesOfSection(part).includes(volid),
  );
  if (isUsed)
    throw new PveError(`unable to delete '${volid}' - volume is still in use (snapshot?)`);
  yield* free(applier.cluster, applier.worker, volid);
  config.main.delete(key);
}

function* setOptions(
  applier: Applier,
  config: GuestConfig,
  settings: Readonly<Record<string, string>>,
): Process<void> {
  for (const [key, value] of Object.entries(settings)) {
    const text = isDriveKey(key) ? yield* newDrive(applier, config, { key, value }) : value;
    config.pendingDelete.delete(key);
    config.pending.set(key, text);
    yield* applier.cluster.step(`set ${key}`);
    write(applier, config);
  }
}

function* newDrive(
  applier: Applier,
  config: GuestConfig,
  { key, value }: { readonly key: string; readonly value: string },
): Process<string> {
  if (newCloudinitOf(parseDrive(value).file) !== undefined) demandNoOther(config, key);
  const disks: MadeDisks = { settings: {}, made: [] };
  try {
    yield* makeDisks(applier, { [key]: value }, disks);
  } catch (error) {
    yield* cleanUp(applier.cluster, applier.worker, disks.made);
    throw error;
  }
  return disks.settings[key] ?? value;
}

function demandNoOther(config: GuestConfig, key: string): void {
  const other = drivesOf(config.main).find(([name, drive]) => name !== key && isCloudinit(drive));
  if (other === undefined) return;
  throw new PveError(`${key} - cloud-init drive is already attached at '${other[0]}'`);
}
