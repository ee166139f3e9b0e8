import type { GuestConfig, Section } from "../config-file.ts";
import { messageOf, parameterError, PveError } from "../errors.ts";
import { type Process, work } from "../process.ts";
import { type Applier, applyOption, dropOption, write } from "./apply.ts";
import { record, writeDrive } from "./cloudinit-drive.ts";
import { isDriveKey } from "./drive.ts";
import { bootOrder } from "./hardware.ts";
import { changeOf, type Plug, removalOf } from "./plugs.ts";

/** Options that concern no running hardware. */
const always =
  /^(description|hookscript|lock|migrate_\w+|name|onboot|protection|shares|startup|tags|vmstatestorage|ci\w+|sshkeys|nameserver|searchdomain|ipconfig\d+)$/;

export interface Hotplug extends Applier {
  /** The options that this call changed; those that wait from before go on waiting. */
  readonly modified: ReadonlySet<string>;
}

/**
 * Applies what a running machine can take; the rest waits until it is started anew. Devices that
 * the guest does not let go are an error, and wait too.
 */
export function* hotplug(plugging: Hotplug, config: GuestConfig): Process<void> {
  const errors: Record<string, string> = {};
  const before = new Map(config.main);
  for (const key of config.pending.keys()) {
    if (always.test(key)) yield* applyOption(plugging, config, key);
  }
  yield* unplugAll(plugging, config, errors);
  yield* plugAll(plugging, config, errors);
  write(plugging, config);
  recordChanges(plugging, config, before);
  if (Object.keys(errors).length > 0) throw parameterError(errors);
}

function* unplugAll(
  plugging: Hotplug,
  config: GuestConfig,
  errors: Record<string, string>,
): Process<void> {
  const running = { config, features: featuresOf(config) };
  for (const key of [...config.pendingDelete.keys()].sort()) {
    if (!plugging.modified.has(key)) continue;
    const plug = always.test(key) ? now : removalOf(running, key);
    if (!(yield* tryPlug(plugging, config, { key, plug, errors }))) continue;
    const isForced = config.pendingDelete.get(key)?.isForced === true;
    yield* dropOption(plugging, config, { key, isForced });
    config.pendingDelete.delete(key);
  }
}

function* plugAll(
  plugging: Hotplug,
  config: GuestConfig,
  errors: Record<string, string>,
): Process<void> {
  const running = { config, features: featuresOf(config) };
  for (const key of config.pending.keys()) {
    if (!plugging.modified.has(key)) continue;
    const plug = changeOf(running, key);
    if (yield* tryPlug(plugging, config, { key, plug, errors })) {
      yield* applyOption(plugging, config, key);
    }
  }
}

/** The cloud-init drive of a running machine stays as it was, unless it may be plugged too. */
function recordChanges(plugging: Hotplug, config: GuestConfig, before: Section): void {
  const { cluster, worker } = plugging;
  for (const key of new Set([...before.keys(), ...config.main.keys()])) {
    const change = { old: before.get(key), new: config.main.get(key) };
    record(cluster, { node: worker.node, config, key }, change);
  }
  if (featuresOf(config).has("cloudinit")) writeDrive(cluster, worker.node, config);
}

const now: Plug = { kind: "now" };

/** Whether the machine took it. */
function* tryPlug(
  plugging: Hotplug,
  config: GuestConfig,
  change: { readonly key: string; readonly plug: Plug; readonly errors: Record<string, string> },
): Process<boolean> {
  const { key, plug, errors } = change;
  try {
    if (plug.kind === "refused") throw new PveError(plug.why);
    if (plug.kind === "unplug") yield* unplug(plugging, config, key);
    return plug.kind !== "later";
  } catch (error) {
    errors[key] = `hotplug problem - ${messageOf(error)}\n`;
    return false;
  }
}

const releaseMs = 6_000;

/** Devices on the PCI bus are only gone when the guest has let them go; with no guest, never. */
function* unplug({ cluster, vmid }: Hotplug, config: GuestConfig, key: string): Process<void> {
  if (isDriveKey(key) && bootOrder(config.main).includes(key)) {
    throw new PveError(`can't unplug bootdisk '${key}'`);
  }
  const isSingle = config.main.get("scsihw") === "virtio-scsi-single";
  const onBus = /^(virtio|net)\d+$/.test(key) || (isSingle && key.startsWith("scsi"));
  if (!onBus || cluster.machine(vmid)?.guest !== undefined) return;
  yield* work("guest does not let go", releaseMs);
  const device = key.replace(/^scsi/, "virtioscsi");
  const isNew = cluster.state.release === "9.2";
  const why = isNew ? " - still busy in guest?" : "";
  throw new PveError(`error on hot-unplugging device '${device}'${why}`);
}

function featuresOf(config: GuestConfig): Set<string> {
  const text = config.main.get("hotplug") ?? "1";
  if (text === "0") return new Set();
  return new Set((text === "1" ? "network,disk,usb" : text).split(/[,;\s]+/));
}
