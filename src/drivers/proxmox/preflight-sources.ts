import type { Draft, Failure, KnownFile } from "../../hypervisor/index.ts";
import type { DriverContext } from "./context.ts";
import { otherFile } from "./known-file.ts";
import { cannotClone } from "./operations/clone.ts";
import { hasImportContent, type Release } from "./release.ts";
import { listVolumes, type NodeStorage } from "./storages.ts";
import { parseVolume } from "./translate/volumes.ts";

/** Whether what the disks are filled from is where it can be read. Reads only. */
export async function checkSources(
  context: DriverContext,
  { disks, node, clone }: Draft,
  storages: readonly NodeStorage[],
): Promise<Failure[]> {
  const found: Failure[] = [];
  const refusal = clone === undefined ? undefined : await cannotClone(context, clone, node);
  if (refusal !== undefined) found.push(refusal);
  for (const { name, fill } of disks) {
    if (fill.from === "machine") {
      const read = await context.configs.read({ node, externalId: fill.externalId });
      if (read.type === "failed") found.push(read.failure);
      if (read.type === "notHere") {
        const message = `disks[${name}]: there is no machine ${fill.externalId} on ${node}`;
        found.push({ category: "ImageNotFound", message });
      }
    } else if (fill.from === "volume") {
      const { volume, knownFile: known } = fill;
      const failure = await checkVolume(context, { node, volume, known }, storages);
      if (failure !== undefined) {
        found.push({ ...failure, message: `disks[${name}]: ${failure.message}` });
      }
    }
  }
  return found;
}

/** Whether the discs lie where the drives expect them. Reads only. */
export async function checkDiscs(
  context: DriverContext,
  { shape, node }: Draft,
  storages: readonly NodeStorage[],
): Promise<Failure[]> {
  const found: Failure[] = [];
  for (const { name, medium = "" } of shape.cdroms ?? []) {
    if (medium === "" || context.glance.hasSeen(node, medium)) continue;
    const storage = parseVolume(medium)?.storage;
    const failure =
      storage === undefined || !storages.some((one) => one.name === storage)
        ? noHolder(medium, node)
        : await findVolume(context, { node, storage }, { volume: medium, content: "iso" });
    if (failure !== undefined) {
      found.push({ ...failure, message: `cdroms[${name}]: ${failure.message}` });
    }
  }
  return found;
}

interface Filling {
  readonly node: string;
  readonly volume: string;
  readonly known?: KnownFile | undefined;
}

async function checkVolume(
  context: DriverContext,
  { node, volume, known }: Filling,
  storages: readonly NodeStorage[],
): Promise<Failure | undefined> {
  const { release, glance } = context;
  const storage = parseVolume(volume)?.storage;
  if (storage === undefined || !storages.some(({ name }) => name === storage)) {
    return noHolder(volume, node);
  }
  const owner = parseVolume(volume)?.owner;
  const place = { node, storage };
  if (owner !== undefined) {
    return await findVolume(context, place, { volume, content: "images", vmid: owner });
  }
  if (!hasImportContent(release())) return noImages(release());
  if (known !== undefined) return await otherFile(context, { node, volume, known });
  if (glance.hasSeen(node, volume)) return undefined;
  return await findVolume(context, place, { volume, content: "import" });
}

function noHolder(volume: string, node: string): Failure {
  return { category: "ImageNotFound", message: `no storage on ${node} can hold ${volume}` };
}

interface Wanted {
  readonly volume: string;
  readonly content: "import" | "images" | "iso";
  readonly vmid?: string;
}

async function findVolume(
  { api, glance }: DriverContext,
  place: { readonly node: string; readonly storage: string },
  { volume, ...filter }: Wanted,
): Promise<Failure | undefined> {
  const volumes = await listVolumes(api, place, filter);
  if (!volumes.ok) return volumes.failure;
  const ids = volumes.value.map((row) => row.volume);
  glance.saw(place.node, ids);
  if (ids.includes(volume)) return undefined;
  return {
    category: "ImageNotFound",
    message: `${volume} is not on ${place.node}`,
    remedy:
      "Put it there, correct its name, or place the machine on the node that has it. Berth looks again by itself.",
  };
}

function noImages({ text }: Release): Failure {
  return {
    category: "APINotSupported",
    message: `Proxmox VE ${text} cannot fill a disk from an image file`,
    remedy: "Make the machine by clone, or from a disk that is there; or upgrade to 8.4.",
  };
}
