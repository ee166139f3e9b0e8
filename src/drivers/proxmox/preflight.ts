import type { Answer, Draft, Failure, NewDisk, Preflight } from "../../hypervisor/index.ts";
import { answered } from "../../hypervisor/index.ts";
import { humanBytes } from "../../kernel/human-bytes.ts";
import type { DriverContext } from "./context.ts";
import { classifyError, readFailureOf } from "./errors.ts";
import { fitShape } from "./fit.ts";
import { checkPool } from "./preflight-pool.ts";
import { checkRights } from "./preflight-rights.ts";
import { checkDiscs, checkSources } from "./preflight-sources.ts";
import { drivesOf, volumesOf } from "./references.ts";
import { isSupported } from "./release.ts";
import { listVolumes, nodeStorages, type NodeStorage, unlisted } from "./storages.ts";
import { parseVolume } from "./translate/volumes.ts";
import { pathPart } from "./wire/wire.ts";
import { rowsOf, textOf } from "./wire/rows.ts";

/** All that would make the creation or the addition fail, in one list. Reads only. */
export async function preflight(context: DriverContext, draft: Draft): Promise<Preflight> {
  const { node } = draft;
  const storages = await storagesOf(context, node);
  // Of a node that does not answer nothing more can be found out.
  if (!storages.ok) return { findings: [storages.failure], volumesBefore: [] };
  const before = await volumesBefore(context, draft, storages.value);
  const inTheWay = before.ok ? before.value.filter(isVolume) : [];
  const findings = [
    ...checkShape(context, draft),
    ...(await checkRights(context, draft)),
    ...homesOf(draft).flatMap((home) => checkHome(home, storages.value, node)),
    ...(await checkPool(context, draft)),
    ...checkSpace(draft.disks, storages.value),
    ...(await checkSources(context, draft, storages.value)),
    ...(await checkDiscs(context, draft, storages.value)),
    ...(await checkNetworks(context, draft)),
    ...(before.ok ? leftoversOf(inTheWay, draft) : [before.failure]),
  ];
  return { findings, volumesBefore: before.ok ? before.value : [], inTheWay };
}

/** As the last glance at the cluster showed them, which is seconds old; else asked for. */
async function storagesOf(
  { api, glance }: DriverContext,
  node: string,
): Promise<Answer<readonly NodeStorage[]>> {
  const seen = glance.storagesOf(node);
  return seen === undefined ? await nodeStorages(api, node) : answered(seen);
}

interface Home {
  readonly field: string;
  readonly storage: string;
  readonly takes: keyof typeof contentNames;
}

/** What a storage has to take, and what people call it. */
const contentNames = { images: "disks", iso: "discs" } as const;

/** The storages that volumes and files of the machine go to, by what says so. */
function homesOf({ shape, disks, seedStorage }: Draft): Home[] {
  const { firmware, cloudInit } = shape;
  const drive = cloudInit?.seed === undefined ? cloudInit?.storage : undefined;
  const named = [
    ...disks.map(({ name, storage }) => [`disks[${name}]`, storage] as const),
    ["firmware.storage", firmware?.storage],
    ["cloudInit.storage", drive],
  ] as const;
  const homes = named.flatMap(([field, storage]): Home[] => {
    return storage === undefined ? [] : [{ field, storage, takes: "images" }];
  });
  if (seedStorage === undefined) return homes;
  return [...homes, { field: "the disc of the first boot", storage: seedStorage, takes: "iso" }];
}

function checkShape(context: DriverContext, { shape }: Draft): readonly Failure[] {
  const release = context.release();
  const { refusals } = fitShape(shape, release);
  if (isSupported(release)) return refusals;
  const message = `Proxmox VE ${release.text} is older than 7.2`;
  return [...refusals, { category: "APINotSupported", message }];
}

function checkHome(home: Home, storages: readonly NodeStorage[], node: string): Failure[] {
  const storage = storages.find(({ name }) => name === home.storage);
  const where = `${home.field}: the storage ${home.storage}`;
  if (storage === undefined) {
    const message = `${where} does not exist on ${node}`;
    return [{ category: "ConfigurationError", message, remedy: remedyOf(home) }];
  }
  if (!storage.contents.includes(home.takes)) {
    const message = `${where} does not take ${contentNames[home.takes]}`;
    return [{ category: "ConfigurationError", message, remedy: remedyOf(home) }];
  }
  if (storage.isUsable) return [];
  return [{ category: "NodeUnhealthy", message: `${where} is not available on ${node}` }];
}

function remedyOf({ takes }: Home): string {
  const content = takes === "iso" ? "ISO images" : "disk images";
  return `Name a storage of the node that takes ${content} (pvesm status), or make it one there.`;
}

/** What a disk takes at most. Storages that take space only as it is used may still say yes. */
function checkSpace(disks: readonly NewDisk[], storages: readonly NodeStorage[]): Failure[] {
  return storages.flatMap(({ name, availableBytes }) => {
    const here = disks.filter(({ storage }) => storage === name);
    const wanted = here.reduce((sum, { sizeBytes }) => sum + (sizeBytes ?? 0), 0);
    if (availableBytes === undefined || wanted <= availableBytes) return [];
    const [left, needed] = [humanBytes(availableBytes, Math.floor), humanBytes(wanted, Math.ceil)];
    const message = `the storage ${name} has ${left} left of ${needed} needed`;
    const remedy = `Free space on ${name}, ask for less, or name another storage.`;
    return [{ category: "QuotaExceeded" as const, message, remedy }];
  });
}

async function checkNetworks(
  { api, glance }: DriverContext,
  { shape, node }: Draft,
): Promise<Failure[]> {
  const named = (shape.networks ?? []).flatMap(({ network }) => network ?? []);
  const wanted = named.filter((bridge) => !glance.hasSeen(node, bridge));
  if (wanted.length === 0) return [];
  const result = await api.get(`/nodes/${pathPart(node)}/network`, { type: "any_bridge" });
  if (result.type === "error" && classifyError(result).category === "PermissionDenied") return [];
  if (result.type !== "data") return [readFailureOf(result, `list the networks of ${node}`)];
  const rows = rowsOf(result.data);
  const there = new Set(rows.map((row) => textOf(row, "iface")));
  glance.saw(node, [...there]);
  return [...new Set(wanted)]
    .filter((bridge) => !there.has(bridge))
    .map((bridge) => {
      const message = `the bridge ${bridge} does not exist on ${node}, or the token may not use it`;
      const remedy = "Name a bridge of the node, make it there, or grant SDN.Use on its zone.";
      return { category: "ConfigurationError", message, remedy };
    });
}

/**
 * The names of volumes under the id, on the storages that the machine will use. The others are
 * noted as not listed, so that nothing is ever taken for ours there by its name.
 */
async function volumesBefore(
  context: DriverContext,
  draft: Draft,
  storages: readonly NodeStorage[],
): Promise<Answer<string[]>> {
  const { api } = context;
  const { claim, node } = draft;
  const { externalId } = claim;
  if (draft.isAddition === true) return answered([]);
  const copied = await clonedStorages(context, draft);
  const own = homesOf(draft).filter(({ takes }) => takes === "images");
  const homes = new Set([...own.map(({ storage }) => storage), ...copied]);
  const isListed = ({ name, isUsable }: NodeStorage): boolean => isUsable && homes.has(name);
  const holding = storages.filter(({ contents }) => contents.includes("images"));
  const found = holding.filter((storage) => !isListed(storage)).map(({ name }) => unlisted(name));
  for (const { name } of holding.filter(isListed)) {
    const place = { node, storage: name };
    const volumes = await listVolumes(api, place, { content: "images", vmid: externalId });
    if (!volumes.ok) return volumes;
    const there = volumes.value.filter((row) => row.externalId === externalId);
    const taken = new Set(draft.takes ?? []);
    found.push(...there.map(({ volume }) => volume).filter((volume) => !taken.has(volume)));
  }
  return answered(found);
}

/** Where the copy of a whole machine comes to lie, unless it is told another storage. */
async function clonedStorages(
  { configs }: DriverContext,
  { clone, node }: Draft,
): Promise<string[]> {
  if (clone === undefined) return [];
  const read = await configs.read({ node, externalId: clone.source });
  if (read.type !== "config") return [];
  const volumes = drivesOf(read.config).flatMap(([, text]) => volumesOf(text));
  return volumes.flatMap((volume) => parseVolume(volume)?.storage ?? []);
}

/** And not the note of a storage that was not listed. */
function isVolume(noted: string): boolean {
  return parseVolume(noted)?.owner !== undefined;
}

function leftoversOf(volumes: readonly string[], { claim }: Draft): Failure[] {
  if (volumes.length === 0) return [];
  return [
    {
      category: "OrphanedVolumes",
      message: `volumes of an earlier machine stand under the id ${claim.externalId}: ${volumes.join(", ")}`,
      remedy:
        `If nobody needs them: berth orphans destroy ${volumes.join(" ")}. To keep the data of ` +
        "one, take it over as source.importedDisk with mode: Take. Or choose another externalId. " +
        "Berth goes on by itself.",
    },
  ];
}
