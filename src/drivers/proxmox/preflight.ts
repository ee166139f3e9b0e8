import type { Answer, Draft, Failure, NewDisk, Preflight } from "../../hypervisor/index.ts";
import { answered } from "../../hypervisor/index.ts";
import { listText } from "../../kernel/list-text.ts";
import { guard } from "../../kernel/guard.ts";
import { humanBytes } from "../../kernel/human-bytes.ts";
import type { DriverContext } from "./context.ts";
import { classifyError, readFailureOf } from "./errors.ts";
import { fitShape } from "./fit.ts";
import { writeNotes } from "./listing-notes.ts";
import { checkPool } from "./preflight-pool.ts";
import { checkRights } from "./preflight-rights.ts";
import { checkDiscs, checkSources } from "./preflight-sources.ts";
import { drivesOf, volumesOf } from "./references.ts";
import { isSupported } from "./release.ts";
import { listVolumes, nodeStorages, type NodeStorage } from "./storages.ts";
import { parseVolume } from "./translate/volumes.ts";
import { pathPart } from "./wire/wire.ts";
import { rowsOf, textOf } from "./wire/rows.ts";

/** All that would make the creation or the addition fail, in one list. Reads only. */
export async function preflight(context: DriverContext, draft: Draft): Promise<Preflight> {
  const { node } = draft;
  const storages = await storagesOf(context, node);
  // Of a node that does not answer nothing more can be found out.
  if (!storages.ok) return { findings: [storages.failure], otherVolumes: [] };
  const listed = await volumesUnder(context, draft, storages.value);
  const otherVolumes = listed.ok ? listed.value.volumes : [];
  const findings = [
    ...checkShape(context, draft),
    ...(await checkRights(context, draft)),
    ...homesOf(draft).flatMap((home) => checkHome(home, storages.value, node)),
    ...(await checkPool(context, draft)),
    ...checkSpace(draft.disks, storages.value),
    ...(await checkSources(context, draft, storages.value)),
    ...(await checkDiscs(context, draft, storages.value)),
    ...(await checkNetworks(context, draft)),
    ...(listed.ok ? leftoversOf(otherVolumes, draft) : [listed.failure]),
    ...checkHidden(draft, storages.value),
  ];
  const found = { findings, otherVolumes, inTheWay: otherVolumes };
  if (!listed.ok || draft.isAddition === true) return found;
  return { ...found, notes: writeNotes({ listedOn: node, unlisted: listed.value.unlisted }) };
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

interface Listed {
  readonly volumes: readonly string[];
  /** Storages that were not listed: nothing is ever concluded from what is found there. */
  readonly unlisted: readonly string[];
}

/**
 * Volumes of others were seen under the id on a storage that cannot be looked at now: it may be
 * one that the VM does not use, and they are not gone because nobody can list them.
 */
function checkHidden({ claim, node }: Draft, storages: readonly NodeStorage[]): Failure[] {
  const seen = (claim.otherVolumes ?? []).flatMap(({ id }) => parseVolume(id)?.storage ?? []);
  const isThere = (name: string): boolean => {
    return storages.some((storage) => storage.name === name && storage.isUsable);
  };
  return [...new Set(seen)]
    .filter((name) => !guard("seen-volumes-storage-usable", isThere(name)))
    .map((name) => ({
      category: "NodeUnhealthy",
      message:
        `volumes of others existed under the id ${claim.externalId} on the storage ${name}, ` +
        `which is not available on ${node}`,
      remedy: `See that ${name} is mounted, or choose another externalId.`,
    }));
}

/** The volumes under the id, on the storages that the VM will use; of a chosen id, on all. */
async function volumesUnder(
  context: DriverContext,
  draft: Draft,
  storages: readonly NodeStorage[],
): Promise<Answer<Listed>> {
  const { api } = context;
  const { claim, node } = draft;
  const { externalId } = claim;
  if (draft.isAddition === true) return answered({ volumes: [], unlisted: [] });
  const copied = await clonedStorages(context, draft);
  const own = homesOf(draft).filter(({ takes }) => takes === "images");
  const homes = new Set([...own.map(({ storage }) => storage), ...copied]);
  const isListed = ({ name, isUsable }: NodeStorage): boolean => {
    return isUsable && (homes.has(name) || draft.isChosenId === true);
  };
  const holding = storages.filter(({ contents }) => contents.includes("images"));
  const unlisted = holding.filter((storage) => !isListed(storage)).map(({ name }) => name);
  const found: string[] = [];
  for (const { name } of holding.filter(isListed)) {
    const place = { node, storage: name };
    const volumes = await listVolumes(api, place, { content: "images", vmid: externalId });
    if (!volumes.ok) return volumes;
    const there = volumes.value.filter((row) => row.externalId === externalId);
    const taken = new Set(draft.takes ?? []);
    found.push(...there.map(({ volume }) => volume).filter((volume) => !taken.has(volume)));
  }
  return answered({ volumes: found, unlisted });
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

function leftoversOf(volumes: readonly string[], { claim }: Draft): Failure[] {
  if (volumes.length === 0) return [];
  return [
    {
      category: "OrphanedVolumes",
      message: `volumes of an earlier machine stand under the id ${claim.externalId}: ${listText(volumes)}`,
      remedy:
        `If nobody needs them: berth orphans destroy ${listText(volumes, " ")}. To keep the data ` +
        "of one, take it over as source.importedDisk with mode: Take. Or choose another externalId. " +
        "Berth goes on by itself.",
    },
  ];
}
