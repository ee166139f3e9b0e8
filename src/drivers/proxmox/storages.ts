import { answered, failed } from "../../hypervisor/index.ts";
import type { Answer, StorageContent } from "../../hypervisor/index.ts";
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

/** A row of a storage's list. `vmid` is the one in the name, whoever uses the volume. */
export interface ListedVolume {
  readonly volume: string;
  readonly externalId?: string;
  readonly content: string;
  readonly sizeBytes: number;
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

/**
 * Stands among a Claim's volumes for a storage that was not listed when it was reserved: what lies
 * there may have been there before, so nothing is ever concluded from its name.
 */
export function unlisted(storage: string): string {
  return `${storage}:unlisted`;
}
