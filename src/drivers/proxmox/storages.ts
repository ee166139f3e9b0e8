import { answered, failed } from "../../hypervisor/index.ts";
import type { Answer, SeenFile, StorageContent } from "../../hypervisor/index.ts";
import { readFailureOf } from "./errors.ts";
import type { PveApi } from "./wire/api.ts";
import { type Params, pathPart } from "./wire/wire.ts";
import { isSet, rowsOf, textOf } from "./wire/rows.ts";

/** A storage as one node sees it. */
export interface NodeStorage {
  readonly name: string;
  readonly type: string;
  readonly isShared: boolean;
  readonly isUsable: boolean;
  readonly contents: readonly string[];
  readonly availableBytes?: number;
}

export async function nodeStorages(
  api: PveApi,
  node: string,
): Promise<Answer<readonly NodeStorage[]>> {
  const result = await api.get(`/nodes/${pathPart(node)}/storage`);
  if (result.type !== "data") return failed(readFailureOf(result, `list the storages of ${node}`));
  const rows = rowsOf(result.data);
  return answered(
    rows.map((row) => {
      const available = Number(row["avail"]);
      return {
        name: textOf(row, "storage"),
        type: textOf(row, "type"),
        isShared: isSet(row, "shared"),
        isUsable: isSet(row, "active") && isSet(row, "enabled"),
        contents: textOf(row, "content").split(","),
        ...(Number.isFinite(available) ? { availableBytes: available } : {}),
      };
    }),
  );
}

/** How a storage wants new volumes, as far as its configuration says so. */
export interface StorageSettings {
  readonly format?: string;
  /** Whole files are written when they are made, which may take longer than a request may. */
  readonly isPreallocated: boolean;
  /** LVM since 9.0: volumes have the format qcow2, and a name that says so. */
  readonly isVolumeChain: boolean;
}

/** The configuration of all storages that the token sees, by name. */
export async function storageSettings(
  api: PveApi,
): Promise<Answer<ReadonlyMap<string, StorageSettings>>> {
  const result = await api.get("/storage");
  if (result.type !== "data") {
    return failed(readFailureOf(result, "read the configuration of the storages"));
  }
  const rows = rowsOf(result.data).map((row): [string, StorageSettings] => {
    const format = textOf(row, "format");
    const settings = {
      ...(format === "" ? {} : { format }),
      isPreallocated: ["full", "falloc"].includes(textOf(row, "preallocation")),
      isVolumeChain: isSet(row, "snapshot-as-volume-chain"),
    };
    return [textOf(row, "storage"), settings];
  });
  return answered(new Map(rows));
}

/** A row of a storage's list. `vmid` is the one in the name, whoever uses the volume. */
export interface ListedVolume {
  readonly volume: string;
  readonly externalId?: string;
  readonly content: string;
  readonly sizeBytes: number;
  /** Its storage tells no exact size. */
  readonly isApproximate?: true;
  /**
   * Files and logical volumes have one; ZFS and RBD tell none. It is as the storage has it, on the
   * clock of the node or of the file server: it tells two volumes of one name apart.
   */
  readonly createdMs?: number;
}

/** What tells it from another one of the same name, as far as the storage reports it. */
export function sightOf({ sizeBytes, createdMs }: ListedVolume): SeenFile {
  return createdMs === undefined ? { sizeBytes } : { sizeBytes, createdMs };
}

/**
 * What a storage holds. With `vmid` the server also returns rows that belong to nobody (9.2, seen),
 * and rows which the token may not see are left out in silence: Datastore.Allocate shows them all.
 */
export async function listVolumes(
  api: PveApi,
  { node, storage }: { readonly node: string; readonly storage: string },
  filter: Params,
): Promise<Answer<readonly ListedVolume[]>> {
  const path = `/nodes/${pathPart(node)}/storage/${pathPart(storage)}/content`;
  const result = await api.get(path, filter);
  if (result.type !== "data") {
    return failed(readFailureOf(result, `list the storage ${storage} on ${node}`));
  }
  const rows = rowsOf(result.data);
  return answered(
    rows.map((row) => ({
      volume: textOf(row, "volid"),
      ...(row["vmid"] === undefined ? {} : { externalId: textOf(row, "vmid") }),
      content: textOf(row, "content"),
      sizeBytes: Number(row["size"] ?? row["approximate-size"] ?? 0),
      ...(row["size"] === undefined ? { isApproximate: true as const } : {}),
      ...(typeof row["ctime"] === "number" ? { createdMs: row["ctime"] * 1000 } : {}),
    })),
  );
}

const contentWords: Readonly<Record<string, StorageContent>> = {
  images: "Disks",
  import: "Images",
  iso: "ISOs",
  snippets: "Snippets",
  backup: "Backups",
};

export function storageContents(words: readonly string[]): StorageContent[] {
  return words.flatMap((word) => contentWords[word] ?? []);
}

/** The same in Proxmox's own words. */
export function wordsOf(contents: readonly StorageContent[]): string[] {
  return Object.entries(contentWords).flatMap(([word, content]) => {
    return contents.includes(content) ? [word] : [];
  });
}
