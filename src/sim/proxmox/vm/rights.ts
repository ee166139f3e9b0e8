import type { Call } from "../endpoint.ts";
import { parameterError, PveError } from "../errors.ts";
import { demandVolumeAccess, hasContent, isOnNode, storageConfig } from "../storage/storages.ts";
import { parseVolumeId, parseVolumeName } from "../storage/names.ts";
import { parseDevice } from "./devices.ts";
import { type Drive, isCdrom, isDriveKey, newCloudinitOf, newDiskOf, parseDrive } from "./drive.ts";

const groups: readonly { pattern: RegExp; privileges: readonly string[] }[] = [
  {
    pattern: /^(cores|cpu|runningcpu|cpulimit|cpuunits|numa\d*|smp|sockets|vcpus)$/,
    privileges: ["VM.Config.CPU"],
  },
  { pattern: /^(memory|balloon|shares|allow-ksm)$/, privileges: ["VM.Config.Memory"] },
  {
    pattern:
      /^(acpi|hotplug|kvm|machine|runningmachine|scsihw|smbios1|tablet|vga|watchdog|audio0|rng0)$/,
    privileges: ["VM.Config.HWType"],
  },
  {
    pattern:
      /^(agent|autostart|bios|description|keyboard|localtime|migrate_\w+|name|onboot|ostype|protection|reboot|startdate|startup|tdf|template)$/,
    privileges: ["VM.Config.Options"],
  },
  { pattern: /^freeze$/, privileges: ["VM.PowerMgmt"] },
  { pattern: /^(boot|bootdisk|vmstatestorage|unused\d+)$/, privileges: ["VM.Config.Disk"] },
  { pattern: /^net\d+$/, privileges: ["VM.Config.Network"] },
  {
    pattern: /^(ci\w+|sshkeys|nameserver|searchdomain|ipconfig\d+)$/,
    privileges: ["VM.Config.Cloudinit", "VM.Config.Network"],
  },
];

/** Throws unless the caller may set (or remove) each of these options. */
export function demandOptionRights(call: Call, vmid: number, options: readonly string[]): void {
  const { caller, cluster } = call;
  if (caller.id === "root@pam") return;
  for (const option of options) {
    if (isDriveKey(option) || /^((usb|hostpci|virtiofs|serial)\d+|tags)$/.test(option)) continue;
    if (option === "vmstate") demandAll(call, vmid, ["VM.Config.Disk", "VM.PowerMgmt"]);
    else demandOption(call, vmid, option);
    if (option === "startup") {
      cluster.rights.demand(caller, "/", { privileges: ["Sys.Modify"] });
    }
  }
}

/** Tags are looked at when they are written: at creation, that is after all disks are made. */
export function demandTagRights(call: Call, vmid: number): void {
  demandAll(call, vmid, ["VM.Config.Options"]);
}

/** What no group knows is for the user root@pam alone: args, lock, hookscript, vmgenid … */
function demandOption(call: Call, vmid: number, option: string): void {
  const found = groups.find(({ pattern }) => pattern.test(option));
  if (found === undefined) throw new PveError(`only root can set '${option}' config`);
  const { privileges } = found;
  const wanted = privileges.length > 1 ? { privileges, isAny: true } : { privileges };
  call.cluster.rights.demand(call.caller, `/vms/${vmid}`, wanted);
}

function demandAll(call: Call, vmid: number, privileges: readonly string[]): void {
  call.cluster.rights.demand(call.caller, `/vms/${vmid}`, { privileges: [...privileges] });
}

/** Throws unless the caller may pass these devices of the host through, or take them away. */
export function demandDeviceRights(
  call: Call,
  vmid: number,
  settings: Readonly<Record<string, string>>,
): void {
  if (call.caller.id === "root@pam") return;
  for (const [key, text] of Object.entries(settings)) {
    if (/^serial\d+$/.test(key)) demandSerial(call, vmid, { key, text });
    else if (/^usb\d+$/.test(key)) demandUsb(call, vmid, { key, device: parseDevice(text) });
    else if (/^hostpci\d+$/.test(key)) demandPci(call, vmid, { key, device: parseDevice(text) });
    else if (/^virtiofs\d+$/.test(key)) {
      demandAll(call, vmid, ["VM.Config.Disk"]);
      const { rights } = call.cluster;
      const folder = parseDevice(text).get("dirid") ?? parseDevice(text).get("host") ?? "";
      rights.demand(call.caller, `/mapping/dir/${folder}`, { privileges: ["Mapping.Use"] });
    }
  }
}

interface Passed {
  readonly key: string;
  readonly device: ReadonlyMap<string, string>;
}

function demandSerial(
  call: Call,
  vmid: number,
  { key, text }: { key: string; text: string },
): void {
  if (text !== "socket") throw new PveError(`only root can set '${key}' config for real devices`);
  demandAll(call, vmid, ["VM.Config.HWType"]);
}

function demandUsb(call: Call, vmid: number, { key, device }: Passed): void {
  demandAll(call, vmid, ["VM.Config.HWType"]);
  const host = device.get("host");
  if (host?.toLowerCase() === "spice") return;
  if (host !== undefined) {
    throw new PveError(`only root can set '${key}' config for real devices`);
  }
  demandMapping(call, "usb", device.get("mapping"));
}

/** Release 7 knows no mappings: there only root@pam passes a card through. */
function demandPci(call: Call, vmid: number, { key, device }: Passed): void {
  if (call.cluster.state.release === "7.4") throw new PveError(`only root can set '${key}' config`);
  if (device.has("host")) {
    throw new PveError(`only root can set '${key}' config for non-mapped devices`);
  }
  demandMapping(call, "pci", device.get("mapping"));
  demandAll(call, vmid, ["VM.Config.HWType"]);
  if (device.has("romfile")) {
    throw parameterError({ [key]: "only root@pam can set 'romfile' option" });
  }
}

function demandMapping(call: Call, kind: string, name: string | undefined): void {
  if (name === undefined) throw new PveError("either 'host' or 'mapping' must be set.");
  const { rights } = call.cluster;
  rights.demand(call.caller, `/mapping/${kind}/${name}`, { privileges: ["Mapping.Use"] });
}

/** Throws unless the drives' storages can take them and the caller may use them. */
export function demandDriveRights(
  call: Call,
  vmid: number,
  settings: Readonly<Record<string, string>>,
): void {
  for (const [key, text] of Object.entries(settings)) {
    if (!isDriveKey(key)) continue;
    const drive = parseDrive(text);
    const path = `/vms/${vmid}`;
    const privilege = isCdrom(drive) ? "VM.Config.CDROM" : "VM.Config.Disk";
    call.cluster.rights.demand(call.caller, path, { privileges: [privilege] });
    demandImportSyntax(key, drive);
    demandFileRights(call, vmid, drive);
    demandSourceRights(call, key, drive);
  }
}

function demandImportSyntax(key: string, drive: Drive): void {
  if (!drive.options.has("import-from") || isCdrom(drive)) return;
  if (newDiskOf(drive.file)?.gib === 0) return;
  const syntax = "use <storage ID>:0,import-from=<source>";
  throw parameterError({ [key]: `'import-from' requires special syntax - ${syntax}` });
}

function demandFileRights(call: Call, vmid: number, drive: Drive): void {
  const { cluster, caller } = call;
  const cloudinit = newCloudinitOf(drive.file);
  const made = newDiskOf(drive.file);
  if (drive.file === "none") return;
  if (cloudinit !== undefined) {
    const privileges = ["Datastore.AllocateSpace"];
    cluster.rights.demand(caller, `/storage/${cloudinit}`, { privileges });
    return;
  }
  if (drive.file === "cdrom") {
    cluster.rights.demand(caller, "/", { privileges: ["Sys.Console"] });
    return;
  }
  if (isCdrom(drive) || made === undefined) {
    demandVolumeAccess(cluster, caller, { volid: drive.file, vmid });
    return;
  }
  if (made.storage === "") throw new PveError("no storage ID specified (and no default storage)");
  const privileges = ["Datastore.AllocateSpace"];
  cluster.rights.demand(caller, `/storage/${made.storage}`, { privileges });
  demandImages(call, made.storage);
}

/** Throws unless guests' disks may lie on the storage. */
export function demandImages(call: Call, id: string): void {
  const storage = storageConfig(call.cluster, id);
  if (!isOnNode(storage, call.node)) {
    throw new PveError(`storage '${id}' is not available on node '${call.node}'`);
  }
  if (!hasContent(storage, "images")) {
    throw parameterError({ storage: `storage '${id}' does not support vm images` });
  }
}

function demandSourceRights(call: Call, key: string, drive: Drive): void {
  const source = drive.options.get("import-from");
  if (source === undefined) return;
  const { cluster, caller } = call;
  if (source.startsWith("/")) {
    demandVolumeAccess(cluster, caller, { volid: source });
    return;
  }
  const { storage, name } = parseVolumeId(source);
  const { content, vmid } = parseVolumeName(storageConfig(cluster, storage), name);
  if (content !== "images" && content !== "import") {
    const needed = cluster.quirks.importContent
      ? "needs to be 'images' or 'import'"
      : "not an image";
    throw parameterError({ [key]: `${source} has wrong type '${content}' - ${needed}` });
  }
  if (content === "images" && vmid !== undefined) {
    cluster.rights.demand(caller, `/vms/${vmid}`, { privileges: ["VM.Clone"] });
  } else demandVolumeAccess(cluster, caller, { volid: source });
}

/** Since release 8 a bridge is used only with the right to it. */
export function demandBridgeRights(call: Call, settings: Readonly<Record<string, string>>): void {
  if (call.cluster.state.release === "7.4") return;
  for (const [key, text] of Object.entries(settings)) {
    const bridge = /^net\d+$/.test(key) ? /(?:^|,)bridge=([^,]+)/.exec(text)?.[1] : undefined;
    if (bridge === undefined) continue;
    const tag = /(?:^|,)tag=(\d+)/.exec(text)?.[1];
    const path = `/sdn/zones/localnetwork/${bridge}${tag === undefined ? "" : `/${tag}`}`;
    call.cluster.rights.demand(call.caller, path, { privileges: ["SDN.Use"] });
  }
}
