import { createHash } from "node:crypto";
import type { GuestConfig } from "../config-file.ts";
import { PveError } from "../errors.ts";
import type { Process } from "../process.ts";
import { free } from "../storage/operations.ts";
import { type Applier, applyPending, isOwned, letGo, write } from "./apply.ts";
import { cleanUp } from "./create.ts";
import {
  drivesOf,
  isCdrom,
  isCloudinit,
  isDriveKey,
  newCloudinitOf,
  parseDrive,
  volumesOfSection,
} from "./drive.ts";
import { bootOrder } from "./hardware.ts";
import { hotplug } from "./hotplug.ts";
import { makeDisks, type MadeDisks } from "./make-disks.ts";

/** What an update asks for. */
export interface Update {
  readonly settings: Readonly<Record<string, string>>;
  readonly deletes: readonly string[];
  readonly reverts: readonly string[];
  readonly isForced: boolean;
  readonly skipsLock: boolean;
}

/** Applies an update, one option after the other: a failure midway keeps the earlier ones. */
export function* applyUpdate(applier: Applier, config: GuestConfig, update: Update): Process<void> {
  const { cluster, worker, vmid } = applier;
  for (const key of update.reverts) {
    config.pending.delete(key);
    config.pendingDelete.delete(key);
  }
  const deletes = [...update.deletes, ...leftOfSuspension(config, update)];
  for (const key of deletes) {
    yield* deleteOption(applier, config, { key, isForced: update.isForced });
    write(applier, config);
  }
  yield* setOptions(applier, config, update.settings);
  if (dropUnchanged(config) || update.reverts.length > 0) write(applier, config);
  yield* cluster.step("apply pending");
  if (config.pending.size === 0 && config.pendingDelete.size === 0) return;
  const modified = new Set(["boot", ...deletes, ...Object.keys(update.settings)]);
  if (cluster.isRunning(worker.node, vmid)) yield* hotplug({ ...applier, modified }, config);
  else yield* applyPending(applier, config);
}

/** What belongs to a saved memory goes with it, and so does its lock. */
function leftOfSuspension({ main }: GuestConfig, { deletes }: Update): string[] {
  if (!deletes.includes("vmstate")) return [];
  const lock = main.get("lock") === "suspended" ? ["lock"] : [];
  return [...lock, "runningmachine", "runningcpu"].filter((key) => main.has(key));
}

/** Forgets what is asked for and is so already. */
function dropUnchanged(config: GuestConfig): boolean {
  const same = [...config.pending].filter(([key, value]) => config.main.get(key) === value);
  const gone = [...config.pendingDelete.keys()].filter((key) => !config.main.has(key));
  for (const [key] of same) config.pending.delete(key);
  for (const key of gone) config.pendingDelete.delete(key);
  return same.length + gone.length > 0;
}

function* deleteOption(
  applier: Applier,
  config: GuestConfig,
  { key, isForced }: { readonly key: string; readonly isForced: boolean },
): Process<void> {
  const planned = config.pending.get(key);
  const value = config.main.get(key) ?? planned;
  if (value === undefined) return;
  config.pending.delete(key);
  dropFromBoot(config, key);
  if (/^unused\d+$/.test(key) || key === "vmstate") {
    yield* freeVolume(applier, config, key);
    return;
  }
  if (isDriveKey(key)) {
    demandUnprotected(config, `can't remove drive '${key}'`);
    // A disk that was only planned is let go at once.
    if (planned !== undefined) {
      yield* letGo(applier, config, { drive: parseDrive(planned), isForced: false });
    }
  }
  if (key === "tags") config.main.delete(key);
  else if (config.main.has(key)) config.pendingDelete.set(key, { isForced });
}

function demandUnprotected(config: GuestConfig, what: string): void {
  if (config.main.get("protection") !== "1") return;
  throw new PveError(`${what} - protection mode enabled`);
}

/** A device that goes is not booted from any more. */
function dropFromBoot(config: GuestConfig, key: string): void {
  const order = bootOrder(new Map([...config.main, ...config.pending]));
  if (!order.includes(key)) return;
  setBoot(
    config,
    order.filter((device) => device !== key),
  );
}

function setBoot(config: GuestConfig, order: readonly string[]): void {
  config.pending.set("boot", order.length === 0 ? "" : `order=${order.join(";")}`);
}

/** Frees a volume that is no drive any more; one of another guest is only forgotten. */
function* freeVolume(applier: Applier, config: GuestConfig, key: string): Process<void> {
  const drive = parseDrive(config.main.get(key) ?? "");
  const { file } = drive;
  const what = key === "vmstate" ? `vmstate '${file}'` : `unused disk '${file}'`;
  demandUnprotected(config, `can't remove ${what}`);
  const isUsed = [...config.snapshots.values()].some((part) =>
    volumesOfSection(part).includes(file),
  );
  if (isUsed) throw new PveError(`unable to delete '${file}' - volume is still in use (snapshot?)`);
  if (isOwned(applier, drive)) yield* free(applier.cluster, applier.worker, file);
  config.main.delete(key);
}

function* setOptions(
  applier: Applier,
  config: GuestConfig,
  settings: Readonly<Record<string, string>>,
): Process<void> {
  for (const [key, value] of Object.entries(settings)) {
    if (config.pending.get(key) === value) continue;
    const text = yield* newValue(applier, config, { key, value });
    config.pendingDelete.delete(key);
    config.pending.set(key, text);
    yield* applier.cluster.step(`set ${key}`);
    write(applier, config);
  }
}

interface Setting {
  readonly key: string;
  readonly value: string;
}

function* newValue(applier: Applier, config: GuestConfig, setting: Setting): Process<string> {
  const { key, value } = setting;
  if (key === "cipassword") return hashed(applier, config, value);
  if (!isDriveKey(key)) return value;
  const planned = config.pending.get(key);
  if (planned !== undefined) {
    yield* letGo(applier, config, { drive: parseDrive(planned), isForced: false });
  }
  if (key === "tpmstate0") demandSameTpm(config.main.get(key), value);
  const text = yield* newDrive(applier, config, setting);
  appendToBoot(config, key, text);
  return text;
}

/** Passwords are stored as hashes, but for Windows, which gets them as they are. */
function hashed({ cluster }: Applier, config: GuestConfig, value: string): string {
  if (/^\$(?:[156]|2[ay])(\$.+){2}/.test(value)) return value;
  if (/^(w|win)\w*\d/.test(config.main.get("ostype") ?? "")) return value;
  const salt = Buffer.from(cluster.random.bytes(6)).toString("base64").replaceAll(/[+=]/g, ".");
  const digest = createHash("sha256").update(`${salt}${value}`).digest("base64");
  return `$5$${salt}$${digest.replaceAll(/[+=]/g, ".")}`;
}

function demandSameTpm(old: string | undefined, value: string): void {
  if (old === undefined) return;
  const [before, after] = [parseDrive(old), parseDrive(value)];
  const versionOf = (drive: typeof before): string => drive.options.get("version") ?? "v1.2";
  if (before.file !== after.file || versionOf(before) === versionOf(after)) return;
  throw new PveError("cannot change TPM state version after creation");
}

/** A new CD drive can be booted from, where there is an order at all. */
function appendToBoot(config: GuestConfig, key: string, text: string): void {
  const order = bootOrder(new Map([...config.main, ...config.pending]));
  if (order.length === 0 || order.includes(key) || !isCdrom(parseDrive(text))) return;
  setBoot(config, [...order, key]);
}

function* newDrive(
  applier: Applier,
  config: GuestConfig,
  { key, value }: Setting,
): Process<string> {
  if (newCloudinitOf(parseDrive(value).file) !== undefined) demandNoOther(config, key);
  const disks: MadeDisks = { settings: {}, made: [] };
  const isTemplate = config.main.get("template") === "1";
  try {
    yield* makeDisks({ ...applier, isTemplate }, { [key]: value }, disks);
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
