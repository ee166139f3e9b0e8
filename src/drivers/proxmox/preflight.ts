import type { Answer, Draft, Failure, NewDisk, Preflight } from "../../hypervisor/index.ts";
import { answered } from "../../hypervisor/index.ts";
import type { DriverContext } from "./context.ts";
import { classifyError, readFailureOf } from "./errors.ts";
import { fitShape } from "./fit.ts";
import { hasImportContent, isSupported, type Release } from "./release.ts";
import { listVolumes, nodeStorages, type NodeStorage } from "./storages.ts";
import { parseVolume } from "./translate/volumes.ts";
import { pathPart } from "./wire/wire.ts";
import { rowsOf, textOf } from "./wire/rows.ts";

/** All that would make the creation fail, in one list. Reads only. */
export async function preflight(context: DriverContext, draft: Draft): Promise<Preflight> {
  const { node } = draft;
  const storages = await nodeStorages(context.api, node);
  // Of a node that does not answer nothing more can be found out.
  if (!storages.ok) return { findings: [storages.failure], volumesBefore: [] };
  const before = await volumesBefore(context, draft, storages.value);
  const findings = [
    ...checkShape(context, draft),
    ...draft.disks.flatMap((disk) => checkDisk(disk, storages.value, node)),
    ...checkSpace(draft.disks, storages.value),
    ...(await checkSources(context, draft, storages.value)),
    ...(await checkNetworks(context, draft)),
    ...(before.ok ? leftoversOf(before.value, draft) : [before.failure]),
  ];
  return { findings, volumesBefore: before.ok ? before.value : [] };
}

function checkShape(context: DriverContext, { shape }: Draft): readonly Failure[] {
  const release = context.release();
  const { refusals } = fitShape(shape, release);
  if (isSupported(release)) return refusals;
  const message = `Proxmox VE ${release.text} is older than 7.2`;
  return [...refusals, { category: "APINotSupported", message }];
}

function checkDisk(disk: NewDisk, storages: readonly NodeStorage[], node: string): Failure[] {
  const storage = storages.find(({ name }) => name === disk.storage);
  const where = `disks[${disk.name}]: the storage ${disk.storage}`;
  if (storage === undefined) {
    return [{ category: "ConfigurationError", message: `${where} does not exist on ${node}` }];
  }
  if (!storage.contents.includes("images")) {
    return [{ category: "ConfigurationError", message: `${where} does not take disks` }];
  }
  if (storage.isUsable) return [];
  return [{ category: "NodeUnhealthy", message: `${where} is not available on ${node}` }];
}

/** What a disk takes at most. Storages that take space only as it is used may still say yes. */
function checkSpace(disks: readonly NewDisk[], storages: readonly NodeStorage[]): Failure[] {
  return storages.flatMap(({ name, availableBytes }) => {
    const here = disks.filter(({ storage }) => storage === name);
    const wanted = here.reduce((sum, { sizeBytes }) => sum + (sizeBytes ?? 0), 0);
    if (availableBytes === undefined || wanted <= availableBytes) return [];
    const message = `the storage ${name} has ${availableBytes} bytes left of ${wanted} needed`;
    return [{ category: "QuotaExceeded" as const, message }];
  });
}

async function checkSources(
  context: DriverContext,
  { disks, node }: Draft,
  storages: readonly NodeStorage[],
): Promise<Failure[]> {
  const found: Failure[] = [];
  for (const { name, fill } of disks) {
    if (fill.from === "machine") {
      const read = await context.configs.read({ node, externalId: fill.externalId });
      if (read.type === "failed") found.push(read.failure);
      if (read.type === "notHere") {
        const message = `disks[${name}]: there is no machine ${fill.externalId} on ${node}`;
        found.push({ category: "ImageNotFound", message });
      }
    } else if (fill.from === "volume") {
      const failure = await checkVolume(context, { node, volume: fill.volume }, storages);
      if (failure !== undefined) {
        found.push({ ...failure, message: `disks[${name}]: ${failure.message}` });
      }
    }
  }
  return found;
}

async function checkVolume(
  { api, release }: DriverContext,
  { node, volume }: { readonly node: string; readonly volume: string },
  storages: readonly NodeStorage[],
): Promise<Failure | undefined> {
  const storage = parseVolume(volume)?.storage;
  if (storage === undefined || !storages.some(({ name }) => name === storage)) {
    return { category: "ImageNotFound", message: `no storage on ${node} can hold ${volume}` };
  }
  const owner = parseVolume(volume)?.owner;
  if (owner === undefined && !hasImportContent(release())) return noImages(release());
  const filter = owner === undefined ? { content: "import" } : { content: "images", vmid: owner };
  const volumes = await listVolumes(api, { node, storage }, filter);
  if (!volumes.ok) return volumes.failure;
  if (volumes.value.some((row) => row.volume === volume)) return undefined;
  return { category: "ImageNotFound", message: `${volume} is not on ${node}` };
}

function noImages({ text }: Release): Failure {
  return {
    category: "APINotSupported",
    message: `Proxmox VE ${text} cannot fill a disk from an image file`,
    remedy: "Make the machine by clone, or from a disk that is there; or upgrade to 8.4.",
  };
}

async function checkNetworks({ api }: DriverContext, { shape, node }: Draft): Promise<Failure[]> {
  const wanted = (shape.networks ?? []).flatMap(({ network }) => network ?? []);
  if (wanted.length === 0) return [];
  const result = await api.get(`/nodes/${pathPart(node)}/network`, { type: "any_bridge" });
  if (result.type === "error" && classifyError(result).category === "PermissionDenied") return [];
  if (result.type !== "data") return [readFailureOf(result, `list the networks of ${node}`)];
  const rows = rowsOf(result.data);
  const there = new Set(rows.map((row) => textOf(row, "iface")));
  return [...new Set(wanted)]
    .filter((bridge) => !there.has(bridge))
    .map((bridge) => {
      const message = `the bridge ${bridge} does not exist on ${node}, or the token may not use it`;
      return { category: "ConfigurationError", message };
    });
}

/** The names of volumes under the id, on every storage that the node can read now. */
async function volumesBefore(
  { api }: DriverContext,
  { claim, node }: Draft,
  storages: readonly NodeStorage[],
): Promise<Answer<string[]>> {
  const { externalId } = claim;
  const found: string[] = [];
  for (const { name } of storages.filter((storage) => {
    return storage.isUsable && storage.contents.includes("images");
  })) {
    const place = { node, storage: name };
    const volumes = await listVolumes(api, place, { content: "images", vmid: externalId });
    if (!volumes.ok) return volumes;
    const own = volumes.value.filter((row) => row.externalId === externalId);
    found.push(...own.map(({ volume }) => volume));
  }
  return answered(found);
}

function leftoversOf(volumes: readonly string[], { claim }: Draft): Failure[] {
  if (volumes.length === 0) return [];
  return [
    {
      category: "OrphanedVolumes",
      message: `volumes of an earlier machine stand under the id ${claim.externalId}: ${volumes.join(", ")}`,
      remedy: "Remove them or take one over as importedDisk; or choose another externalId.",
    },
  ];
}
