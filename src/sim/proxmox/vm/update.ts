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
import { locked, type Process, work } from "../process.ts";
import { propertyOf } from "../schema/check.ts";
import { splitList } from "../schema/formats.ts";
import { schemaOf } from "../schema/schema.ts";
import { findTask } from "../tasks.ts";
import { bootOrder, memoryBytes } from "./hardware.ts";
import { withAddresses } from "./net.ts";
import {
  demandBridgeRights,
  demandDeviceRights,
  demandDriveRights,
  demandOptionRights,
  demandTagRights,
} from "./rights.ts";
import { applyUpdate, type Update } from "./update-apply.ts";
import { demandSshKeys, sortedTags } from "./text.ts";

const notOptions = new Set(
  "node vmid digest delete revert force skiplock background_delay import-working-storage idlist".split(
    " ",
  ),
);

/** PUT …/config: the caller waits until all is done. */
export function* updateVm(call: Call): Process<unknown> {
  const update = yield* prepare(call);
  const lock = guestLock(call.node, vmidOf(call));
  yield* locked(lock, () => apply(call, update, () => undefined));
  return null;
}

/** POST …/config: a worker does it. */
export function* updateVmLater(call: Call): Process<unknown> {
  const update = yield* prepare(call);
  const { cluster, node } = call;
  const lock = guestLock(node, vmidOf(call));
  const shown = Object.entries(update.settings).map(([name, value]) => {
    return ` -${name} ${name === "cipassword" ? "<hidden>" : value}`;
  });
  const start = (): string =>
    fork(call, { type: "qmconfig" }, (task) => {
      task.log(`update VM ${vmidOf(call)}:${shown.join("")}`);
      return locked(lock, () => apply(call, update, task.log));
    });
  if (cluster.quirks.configLocksInWorker) {
    // Checked at once and again under the lock: what waits may find another file.
    demandCurrent(call, update);
    return yield* awaited(call, start());
  }
  const upid = yield* locked(lock, function* () {
    demandCurrent(call, update);
    yield* cluster.step("fork");
    return start();
  });
  return yield* awaited(call, upid);
}

/** With a delay, what ends within it is answered as if it had been done at once. */
function* awaited(call: Call, upid: string): Process<unknown> {
  const delayMs = Number(call.parameters["background_delay"] ?? "0") * 1000;
  for (let waitedMs = 0; waitedMs < delayMs; waitedMs += 1_000) {
    yield* work("wait for worker", 1_000);
    const task = findTask(call.cluster, call.node, upid);
    if (task?.endMs === undefined) continue;
    const status = task.exitStatus ?? "";
    if (status === "OK" || status.startsWith("WARNINGS")) return null;
    throw new PveError(`failed to update VM ${vmidOf(call)}: ${status}`);
  }
  return upid;
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
  demandConsistent(update);
  demandOptionRights(call, vmid, [...update.deletes, ...update.reverts, ...Object.keys(settings)]);
  if ([...update.deletes, ...Object.keys(settings)].includes("tags")) demandTagRights(call, vmid);
  demandDeviceRights(call, vmid, settings);
  demandDriveRights(call, vmid, settings);
  demandBridgeRights(call, settings);
  demandSshKeys(settings);
  yield* cluster.step("update request");
  const config = cluster.readGuest(node, vmid);
  demandDeviceRights(call, vmid, oldDevices(config, update));
  if (cluster.quirks.configChecksLockFirst) demandCurrent(call, update);
  demandBootDevices(config, update);
  demandBalloon(config, update);
  return update;
}

function demandConsistent({ settings, deletes, reverts }: Update): void {
  const isNothing = Object.keys(settings).length + deletes.length + reverts.length === 0;
  if (isNothing) throw new PveError("no options specified");
  for (const [name, options] of [["revert", reverts] as const, ["delete", deletes] as const]) {
    const both = options.find((option) => option in settings);
    if (both === undefined) continue;
    const why = `you can't use '-${both}' and -${name} ${both}' at the same time`;
    throw parameterError({ delete: why });
  }
  const both = deletes.find((option) => reverts.includes(option));
  if (both === undefined) return;
  const why = `you can't use '-delete ${both}' and -revert ${both}' at the same time`;
  throw parameterError({ revert: why });
}

/** Devices that the update takes away or replaces: that needs the same rights. */
function oldDevices(config: GuestConfig, update: Update): Record<string, string> {
  const touched = [...update.deletes, ...Object.keys(update.settings)];
  return Object.fromEntries(
    touched.flatMap((key) => {
      const value = config.main.get(key);
      return value === undefined ? [] : [[key, value]];
    }),
  );
}

function demandBalloon(config: GuestConfig, { settings }: Update): void {
  const { memory, balloon } = settings;
  if (memory === undefined && balloon === undefined) return;
  const planned = new Map([...config.main, ...config.pending]);
  const mostMib = memoryBytes({
    ...config,
    main: new Map([["memory", memory ?? planned.get("memory") ?? "512"]]),
  });
  const wanted = Number(balloon ?? planned.get("balloon") ?? "0");
  if (wanted * 1024 ** 2 <= mostMib) return;
  throw new PveError("balloon value too large (must be smaller than assigned memory)");
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
    if (!isKnown && !/^(lock|vmstate|unused\d+)$/.test(option)) {
      throw parameterError({ [name]: `unknown option '${option}'` });
    }
    return option;
  });
}

function demandBootDevices(config: GuestConfig, { settings, deletes }: Update): void {
  if (settings["boot"] === undefined) return;
  for (const device of bootOrder(new Map([["boot", settings["boot"]]]))) {
    const isThere = config.main.has(device) || config.pending.has(device) || device in settings;
    if (isThere && !deletes.includes(device)) continue;
    throw parameterError({ boot: `invalid bootorder: device '${device}' does not exist'` });
  }
}

function demandCurrent(call: Call, { skipsLock, deletes }: Update): void {
  const config = call.cluster.readGuest(call.node, vmidOf(call));
  demandDigest(call);
  // Throwing the saved memory away is how a suspended guest is unlocked.
  const isWeak = config.main.get("lock") === "suspended" && deletes.includes("vmstate");
  demandUnlocked(config, skipsLock || isWeak);
}

function apply(call: Call, update: Update, log: (line: string) => void): Process<void> {
  demandCurrent(call, update);
  const { cluster, node } = call;
  const applier = { cluster, worker: { node, log }, vmid: vmidOf(call) };
  return applyUpdate(applier, copyConfig(cluster.readGuest(node, applier.vmid)), update);
}
