import { answered, failed } from "../../hypervisor/index.ts";
import type {
  Allocating,
  Answer,
  ClaimedMachine,
  NewVolume,
  Operation,
} from "../../hypervisor/index.ts";
import type { DriverContext } from "./context.ts";
import { readFailureOf } from "./errors.ts";
import { notesOf } from "./listing-notes.ts";
import { nameBlankDisk } from "./named-volumes.ts";
import { type MadeVolume, type Making, newVolumes, type VolumeSize } from "./new-volumes.ts";
import { sourceOf } from "./operations/add-disk.ts";
import { listVolumes, nodeStorages } from "./storages.ts";
import { present } from "./translate/present.ts";
import { nameWithoutStorage, parseVolume } from "./translate/volumes.ts";
import { isJsonObject } from "../../kernel/json.ts";
import { pathPart } from "./wire/wire.ts";

/** Programs that make volumes on these print nothing: zfs create, rbd create. */
const silent: ReadonlySet<string> = new Set(["zfspool", "zfs", "rbd", "iscsidirect"]);

/**
 * What an operation is about to allocate. A storage is listed only where the programs that make
 * volumes are silent: that saves a call for every disk on files and LVM. It is listed also where a
 * worker logs what it allocated (since 9.2): one that is killed while the volume is being made does
 * not get so far, and the program ends what it began.
 */
export async function allocating(
  context: DriverContext,
  operation: Operation,
  id: string,
): Promise<Answer<Allocating | undefined>> {
  const making = await newVolumes(context, operation);
  if (making === undefined) return answered(undefined);
  const types = await typesOf(context, making);
  if (!types.ok) return types;
  const isSilent = (storage: string): boolean => silent.has(types.value.get(storage) ?? "");
  const storages = [...types.value.keys()].filter(isSilent);
  const listed = await listedBefore(context, operation, { ...making, storages });
  if (!listed.ok) return listed;
  const volumes = await sizedVolumes(context, making);
  if (!volumes.ok) return volumes;
  const [first, ...also] = volumes.value;
  if (first === undefined) return answered(undefined);
  const { node, source } = making;
  const type = types.value.get(first.storage) ?? "";
  const named = await nameBlankDisk(context, operation, { id, type });
  if (!named.ok) return named;
  const volume = named.value;
  const more = { ...(also.length > 0 && { also }), ...present({ source, volume }) };
  const complete = storages.length > 0;
  return answered({ node, ...first, ...more, listed: listed.value, complete });
}

/** With their sizes: what is in their place later and has another one was put there by somebody. */
async function sizedVolumes(
  context: DriverContext,
  { node, volumes }: Making,
): Promise<Answer<NewVolume[]>> {
  const found: NewVolume[] = [];
  for (const { storage, size } of volumes) {
    const bytes = await bytesOf(context, node, size);
    if (!bytes.ok) return bytes;
    found.push({ storage, ...present({ sizeBytes: bytes.value }) });
  }
  return answered(found);
}

interface Listing extends Making {
  /** Those that have to be listed. */
  readonly storages: readonly string[];
}

/**
 * The volumes under the id, as they are now. Before the first disk of a VM the listing of its
 * preflight is enough: nothing was allocated since, and that saves a call for every VM.
 */
async function listedBefore(
  { api }: DriverContext,
  operation: Operation,
  { node, storages, externalId: vmid }: Listing,
): Promise<Answer<readonly string[]>> {
  const found: string[] = [];
  for (const storage of storages) {
    const known =
      "claim" in operation ? listedByPreflight(operation.claim, node, storage) : undefined;
    if (known !== undefined) {
      found.push(...known);
      continue;
    }
    const rows = await listVolumes(api, { node, storage }, { content: "images", vmid });
    if (!rows.ok) return rows;
    const own = rows.value.filter(({ externalId }) => externalId === vmid);
    found.push(...own.map(({ volume }) => volume));
  }
  return answered([...new Set(found)]);
}

function listedByPreflight(
  claim: ClaimedMachine,
  node: string,
  storage: string,
): readonly string[] | undefined {
  const { allocation, volumes = [], otherVolumes = [] } = claim;
  if (allocation !== undefined || volumes.length > 0) return undefined;
  const notes = notesOf(claim);
  const isListed = notes?.listedOn === node && !notes.unlisted.includes(storage);
  // One that is missing was not listed: an operation of ours may get its name.
  const there = otherVolumes.filter(({ missingSince }) => missingSince === undefined);
  return isListed ? there.map(({ id }) => id) : undefined;
}

/** The type of each storage that the operation allocates on. */
async function typesOf(
  { api, glance }: DriverContext,
  { node, volumes }: Making,
): Promise<Answer<ReadonlyMap<string, string>>> {
  const names = [...new Set(volumes.map(({ storage }: MadeVolume) => storage))];
  const known = glance.storagesOf(node);
  const typeIn = (storages: typeof known, name: string): string => {
    return storages?.find((storage) => storage.name === name)?.type ?? "";
  };
  const types = new Map(names.map((name) => [name, typeIn(known, name)]));
  if ([...types.values()].every((type) => type !== "")) return answered(types);
  const storages = await nodeStorages(api, node);
  if (!storages.ok) return storages;
  return answered(new Map(names.map((name) => [name, typeIn(storages.value, name)])));
}

/** The exact size of a new volume. Of a copy that is its source's, until it is grown. */
async function bytesOf(
  context: DriverContext,
  node: string,
  size: VolumeSize,
): Promise<Answer<number | undefined>> {
  switch (size.is) {
    case "bytes":
      return answered(size.bytes);
    case "sameAs":
      return await bytesOfVolume(context, node, size.volume);
    case "filled": {
      const source = await sourceOf(context, size.disk, node);
      // What is wrong with it is found and reported when the disk is made.
      if (typeof source !== "string") return answered(undefined);
      return await bytesOfVolume(context, node, source);
    }
  }
}

async function bytesOfVolume(
  context: DriverContext,
  node: string,
  volume: string,
): Promise<Answer<number | undefined>> {
  const known = context.glance.sizeOf(node, volume);
  return known.isKnown ? answered(known.bytes) : readBytes(context, node, volume);
}

async function readBytes(
  context: DriverContext,
  node: string,
  source: string,
): Promise<Answer<number | undefined>> {
  const { storage = "", owner } = parseVolume(source) ?? {};
  const path = `/nodes/${pathPart(node)}/storage/${pathPart(storage)}/content/${pathPart(source)}`;
  const result = await context.api.get(path);
  if (result.type !== "data" && result.type !== "error") {
    return failed(readFailureOf(result, `read the size of ${source}`));
  }
  const data = result.type === "data" && isJsonObject(result.data) ? result.data : {};
  const bytes = typeof data["size"] === "number" ? data["size"] : undefined;
  // The disk of a VM grows; a file that disks are filled from does not, nor does a template's.
  const isFixed = owner === undefined || /^base-\d+-[^/]+$/.test(lastPart(source));
  if (isFixed) context.glance.measured(node, source, bytes);
  return answered(bytes);
}

function lastPart(volume: string): string {
  return nameWithoutStorage(volume).replace(/^.*\//, "");
}
