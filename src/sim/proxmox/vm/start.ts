import type { Cluster } from "../cluster.ts";
import { copyConfig, type GuestConfig } from "../config-file.ts";
import { demandUnlocked, guestLock } from "../endpoint.ts";
import { PveError } from "../errors.ts";
import { locked, type Process, work } from "../process.ts";
import { parseVolumeId } from "../storage/names.ts";
import { free } from "../storage/operations.ts";
import { activate, findVolume } from "../storage/storages.ts";
import { varied } from "../timing.ts";
import { applyPending } from "./apply.ts";
import { writeDrive } from "./cloudinit-drive.ts";
import { demandDevices } from "./devices.ts";
import { drivesOf, isCdrom } from "./drive.ts";
import { guestOf } from "./guest.ts";

export interface StartOptions {
  readonly skipsLock?: boolean;
  readonly machine?: string;
  readonly log?: (line: string) => void;
}

export interface GuestPlace {
  readonly node: string;
  readonly vmid: number;
}

/** Starts QEMU, under the guest's flock. */
export function startWorker(
  cluster: Cluster,
  place: GuestPlace,
  options: StartOptions = {},
): Process<void> {
  return locked(guestLock(place.node, place.vmid), () => start(cluster, place, options));
}

function* start(cluster: Cluster, place: GuestPlace, options: StartOptions): Process<void> {
  const { node, vmid } = place;
  const config = cluster.readGuest(node, vmid);
  if (config.main.get("template") === "1") {
    throw new PveError("you can't start a vm if it's a template");
  }
  const lock = config.main.get("lock");
  const machine = cluster.machine(vmid);
  // While a backup runs QEMU is there already, and only goes on.
  if (lock === "backup" && machine !== undefined) {
    cluster.setMachine(node, vmid, { ...machine, isPaused: false });
    return;
  }
  demandUnlocked(config, options.skipsLock === true || lock === "suspended");
  if (machine !== undefined) throw new PveError(`VM ${vmid} already running`);
  const isResumed = lock === "suspended" || config.main.has("vmstate");
  if (isResumed) options.log?.("Resuming suspended VM");
  else yield* applyAll(cluster, place);
  yield* startQemu(cluster, place, options);
  if (isResumed) yield* dropState(cluster, place, options);
}

function applyAll(cluster: Cluster, { node, vmid }: GuestPlace): Process<void> {
  const changed = copyConfig(cluster.readGuest(node, vmid));
  return applyPending({ cluster, worker: { node, log: () => undefined }, vmid }, changed);
}

function* startQemu(cluster: Cluster, place: GuestPlace, options: StartOptions): Process<void> {
  const { node, vmid } = place;
  const config = cluster.readGuest(node, vmid);
  const asked = options.machine ?? config.main.get("runningmachine") ?? config.main.get("machine");
  demandMachine(cluster, node, asked);
  demandVolumes(cluster, node, config);
  demandDevices(cluster, node, vmid);
  demandBridges(cluster, node, config);
  writeDrive(cluster, node, config);
  yield* work("start QEMU", varied(cluster.random, cluster.timing.startMs));
  const startedMs = cluster.clock.nowMs();
  const pid = cluster.nextPid();
  const guest = guestOf(cluster, node, vmid);
  cluster.setMachine(node, vmid, {
    pid,
    startedMs,
    isPaused: false,
    ...(guest === undefined ? {} : { guest }),
  });
}

/** The saved memory is in the machine now: its volume and the marks of it go. */
function* dropState(
  cluster: Cluster,
  { node, vmid }: GuestPlace,
  { log = () => undefined }: StartOptions,
): Process<void> {
  log("Resumed VM, removing state");
  const volid = cluster.readGuest(node, vmid).main.get("vmstate");
  if (volid !== undefined) yield* free(cluster, { node, log }, volid);
  const config = copyConfig(cluster.readGuest(node, vmid));
  for (const key of ["lock", "vmstate", "runningmachine", "runningcpu"]) config.main.delete(key);
  cluster.writeGuest(node, vmid, config);
}

function demandMachine(cluster: Cluster, node: string, machine: string | undefined): void {
  const version = /^pc-(?:i440fx|q35)-(\d+)\.(\d+)(?:\+pve\d+)?/.exec(machine ?? "");
  if (version === null || machine === undefined) return;
  const [major = "0"] = cluster.quirks.qemuVersion.split(".");
  if (Number(version[1]) <= Number(major)) return;
  const type = machine.includes("+pve") ? machine : `${machine}+pve0`;
  const what = `is too old to run machine type '${type}', please upgrade node '${node}'`;
  throw new PveError(`Installed QEMU version '${cluster.quirks.qemuVersion}' ${what}`);
}

function demandVolumes(cluster: Cluster, node: string, config: GuestConfig): void {
  for (const [, drive] of drivesOf(config.main)) {
    if (!/^[a-z][\w.-]*:/i.test(drive.file)) continue;
    activate(cluster, parseVolumeId(drive.file).storage, node);
    const { volume } = findVolume(cluster, node, drive.file);
    if (volume === undefined) throw new PveError(`volume '${drive.file}' does not exist`);
    const isBroken = volume.isCorrupt === true && volume.format !== "raw" && !isCdrom(drive);
    if (isBroken) throw new PveError("start failed: QEMU exited with code 1");
  }
}

function demandBridges(cluster: Cluster, node: string, config: GuestConfig): void {
  for (const [key, text] of config.main) {
    const bridge = /^net\d+$/.test(key) ? /(?:^|,)bridge=([^,]+)/.exec(text)?.[1] : undefined;
    if (bridge === undefined || cluster.node(node).bridges.includes(bridge)) continue;
    if (cluster.quirks.checksBridge) throw new PveError(`bridge '${bridge}' does not exist`);
    throw new PveError("start failed: QEMU exited with code 1");
  }
}
