import type { JsonObject } from "../../../kernel/json.ts";
import { readFailureOf } from "../errors.ts";
import type { PveApi } from "../wire/api.ts";
import { rowsOf, textOf } from "../wire/rows.ts";
import { pathPart } from "../wire/wire.ts";
import type { ListedStorage, ListedVolume } from "./cluster-inventory.ts";

/** What machines are made of. Backups and snippets are people's own. */
const wanted = ["images", "import", "iso"];

/** The disks and images of every storage; a shared one is listed once, from one node. */
export async function readVolumes(
  api: PveApi,
  storages: readonly ListedStorage[],
  missing: string[],
): Promise<ListedVolume[]> {
  const reads = storages
    .filter(({ isDisabled }) => !isDisabled)
    .flatMap((storage) => {
      const contents = wanted.filter((content) => storage.contents.includes(content));
      const places = storage.spaces.map(({ node }) => ({ node, storage: storage.name }));
      return places.flatMap((place) => contents.map((content) => ({ ...place, content })));
    });
  const lists = await Promise.all(reads.map((read) => listContent(api, read, missing)));
  return lists.flat().toSorted((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1));
}

interface Place {
  readonly node: string;
  readonly storage: string;
  readonly content: string;
}

async function listContent(
  api: PveApi,
  { node, storage, content }: Place,
  missing: string[],
): Promise<ListedVolume[]> {
  const path = `/nodes/${pathPart(node)}/storage/${pathPart(storage)}/content`;
  const result = await api.get(path, { content });
  if (result.type !== "data") {
    const { message } = readFailureOf(result, `list the storage ${storage} on ${node}`);
    missing.push(message);
    return [];
  }
  return rowsOf(result.data).map((row) => volumeOf(row, { node, storage, content }));
}

function volumeOf(row: JsonObject, { node, storage, content }: Place): ListedVolume {
  const used = Number(row["used"] ?? Number.NaN);
  return {
    storage,
    node,
    name: textOf(row, "volid").slice(storage.length + 1),
    content,
    format: textOf(row, "format"),
    sizeBytes: Number(row["size"] ?? 0),
    ...(Number.isNaN(used) ? {} : { usedBytes: used }),
  };
}

function orderOf({ storage, node, name }: ListedVolume): string {
  return `${storage}\n${node}\n${name}`;
}
