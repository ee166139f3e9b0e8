import type { WholeConfig } from "./config-reader.ts";
import type { DriverContext } from "./context.ts";
import { drivesOf } from "./references.ts";
import { nodeStorages, type NodeStorage } from "./storages.ts";
import { readMemory } from "./translate/cpu-memory.ts";
import type { Values } from "./translate/values.ts";
import { parseVolume } from "./translate/volumes.ts";
import { parseProperties, property } from "./wire/property-string.ts";

/** Storages that keep volumes as files: those with a `path` (pve-storage, 7.4 to 9.2). */
const fileBased: ReadonlySet<string> = new Set([
  "dir",
  "nfs",
  "cifs",
  "glusterfs",
  "cephfs",
  "btrfs",
]);

/**
 * Where the server saves the memory of a VM if nothing is said (qemu-server, find_vmstate_storage,
 * 7.4 to 9.2): where the config says, else beside its disks, on a shared storage before a local one
 * and on files before devices, else on `local`. It is computed here so that it is known and
 * recorded before the volume is made. Undefined: the storages of the node are not known.
 */
export async function stateStorage(
  { api, glance }: DriverContext,
  node: string,
  config: WholeConfig,
): Promise<string | undefined> {
  const values = currentValues(config);
  const chosen = values["vmstatestorage"];
  if (chosen !== undefined) return chosen;
  const known = glance.storagesOf(node) ?? (await storagesOrNone(api, node));
  if (known === undefined) return undefined;
  const names = usedStorages({ ...config, values });
  const used = names.flatMap((name) => known.find((storage) => storage.name === name) ?? []);
  if (used.length < names.length) return undefined;
  return (
    (best(used.filter(isShared)) ?? best(used.filter((one) => !isShared(one))))?.name ?? "local"
  );
}

/** Twice the memory and 500 MiB for the devices (qemu-server, __snapshot_save_vmstate). */
export function savedBytes(config: WholeConfig): number {
  const { sizeBytes = 0 } = readMemory(currentValues(config));
  return 2 * sizeBytes + deviceStateBytes;
}

const deviceStateBytes = 500 * 1024 ** 2;

/** The config that the VM runs with: what waits for a restart is not part of it. */
function currentValues({ values, pending }: WholeConfig): Values {
  return { ...values, ...pending.current };
}

async function storagesOrNone(
  api: DriverContext["api"],
  node: string,
): Promise<readonly NodeStorage[] | undefined> {
  const read = await nodeStorages(api, node);
  return read.ok ? read.value : undefined;
}

function usedStorages(config: WholeConfig): string[] {
  const storages = drivesOf(config)
    .filter(([slot, text]) => isUsed(slot) && !text.includes("media=cdrom"))
    .flatMap(([, text]) => {
      const volume = property(parseProperties(text, "file"), "file") ?? "";
      return parseVolume(volume)?.storage ?? [];
    });
  return [...new Set(storages)].toSorted();
}

/** Volumes that are only kept do not count. */
function isUsed(slot: string): boolean {
  return !slot.startsWith("unused") && slot !== "vmstate";
}

function isShared(storage: NodeStorage): boolean {
  return storage.isShared;
}

/** The last one with files, else the first. */
function best(storages: readonly NodeStorage[]): NodeStorage | undefined {
  return storages.findLast(({ type }) => fileBased.has(type)) ?? storages[0];
}
