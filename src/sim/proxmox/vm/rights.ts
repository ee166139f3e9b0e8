import type { Call } from "../endpoint.ts";
import { parameterError, PveError } from "../errors.ts";
import { demandVolumeAccess, hasContent, isOnNode, storageConfig } from "../storage/storages.ts";
import { parseVolumeId, parseVolumeName } from "../storage/names.ts";
import { type Drive, isCdrom, isDriveKey, newCloudinitOf, newDiskOf, parseDrive } from "./drive.ts";

const groups: readonly { pattern: RegExp; privilege: string }[] = [
  { pattern: /^(balloon|memory|shares|hugepages|keephugepages)$/, privilege: "VM.Config.Memory" },
  {
    pattern: /^(cores|cpu|cpulimit|cpuunits|numa\d*|smp|sockets|vcpus|affinity)$/,
    privilege: "VM.Config.CPU",
  },
  {
    pattern:
      /^(acpi|hotplug|kvm|machine|scsihw|smbios1|tablet|vga|watchdog|audio0|rng0|vmgenid|arch|serial\d+)$/,
    privilege: "VM.Config.HWType",
  },
  { pattern: /^net\d+$/, privilege: "VM.Config.Network" },
  {
    pattern: /^(ci\w+|sshkeys|nameserver|searchdomain|ipconfig\d+)$/,
    privilege: "VM.Config.Cloudinit",
  },
  { pattern: /^(unused\d+|vmstate|vmstatestorage)$/, privilege: "VM.Config.Disk" },
];

const rootOnly = /^(args|hookscript|lock|arch|vmgenid|parallel\d+)$/;

/** Throws unless the caller may set (or remove) each of these options. */
export function demandOptionRights(call: Call, vmid: number, options: readonly string[]): void {
  const { caller, cluster } = call;
  for (const option of options) {
    if (rootOnly.test(option) && caller.id !== "root@pam") {
      throw new PveError(`only root can set '${option}' config`);
    }
    if (option === "startup") {
      cluster.rights.demand(caller, "/", { privileges: ["Sys.Modify"] });
    }
    if (isDriveKey(option)) continue;
    const found = groups.find(({ pattern }) => pattern.test(option));
    const privileges = [found?.privilege ?? "VM.Config.Options"];
    cluster.rights.demand(caller, `/vms/${vmid}`, { privileges });
  }
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
