import { answered, isBerthFile, readMark } from "../../hypervisor/index.ts";
import type {
  Answer,
  Inventory,
  InventoryMachine,
  InventoryStorage,
  Survey,
  SurveyedFile,
  SurveyedMachine,
  SurveyedVolume,
} from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { ConfigRead, WholeConfig } from "./config-reader.ts";
import type { DriverContext } from "./context.ts";
import { isHuskConfig } from "./identity.ts";
import { readInventory } from "./inventory.ts";
import { drivesOf, volumesOf } from "./references.ts";
import { unseenRights } from "./rights-to-see.ts";
import { listVolumes, type ListedVolume, sightOf } from "./storages.ts";
import { identityOf, readMachine } from "./translate/machine.ts";
import { present } from "./translate/present.ts";
import { fileNameOf, nameWithoutStorage } from "./translate/volumes.ts";
import { parseProperties, property } from "./wire/property-string.ts";

/** One look at everything. What it gathers on the way, it gathers here. */
interface Gathered {
  readonly context: DriverContext;
  readonly inventory: Inventory;
  readonly configs: Map<string, WholeConfig>;
  readonly missing: string[];
  /** Volumes that are wanted although their VM exists. */
  readonly suspects: ReadonlySet<string>;
}

/**
 * Everything that Berth may have made: one call for the list, one for every machine that is not
 * known, and one for every storage and what it holds. Where volumes without a machine are found,
 * every config is read, because any machine may refer to them.
 */
export async function surveyAll(
  context: DriverContext,
  known: readonly string[],
  suspects: readonly string[] = [],
): Promise<Answer<Survey>> {
  const listed = await readInventory(context.api);
  if (!listed.ok) return listed;
  const inventory = listed.value;
  const missing = [...inventory.missing];
  missing.push(...(await unseenRights(context)));
  const gathered: Gathered = {
    context,
    inventory,
    configs: new Map(),
    missing,
    suspects: new Set(suspects),
  };
  const machines = await surveyMachines(gathered, new Set(known));
  const places = placesOf(inventory);
  const volumes = await surveyVolumes(gathered, places);
  const files = await surveyFiles(gathered, places);
  const nodes = inventory.nodes.filter(({ health }) => health === "Healthy");
  return answered({
    machines,
    volumes,
    files,
    nodes: nodes.map(({ name }) => name),
    storages: places.filter(({ isUsable }) => isUsable).map(placeName),
    missing: [...new Set(missing)],
  });
}

async function surveyMachines(
  gathered: Gathered,
  known: ReadonlySet<string>,
): Promise<SurveyedMachine[]> {
  const found: SurveyedMachine[] = [];
  for (const row of gathered.inventory.machines) {
    found.push(await surveyMachine(gathered, row, known.has(row.externalId)));
  }
  return found;
}

async function surveyMachine(
  gathered: Gathered,
  row: InventoryMachine,
  isKnown: boolean,
): Promise<SurveyedMachine> {
  const { externalId, node, power, name, kind } = row;
  const seen = { externalId, node, power, ...present({ name }) };
  if (kind === "Other") return { ...seen, content: "Other" };
  if (isKnown) return { ...seen, content: "Known", ...present({ lock: row.lock }) };
  const config = await readConfig(gathered, row);
  // What cannot be read is named among the missing; and what cannot be told is nobody's.
  if (config === undefined) return { ...seen, content: "Other" };
  const { values } = config;
  const { mark } = readMark(values["description"] ?? "");
  return {
    ...seen,
    content: isHuskConfig(config) ? "Husk" : "Machine",
    isTemplate: kind === "Template",
    sizeBytes: sizeOf(config, row),
    discs: discsOf(config),
    ...present({ lock: values["lock"], identity: identityOf(values), mark }),
  };
}

/** Also what only goes with the next start: until then it is in its drive. */
function discsOf(config: WholeConfig): string[] {
  const drives = [...drivesOf(config), ...config.pending.leavingDrives];
  const files = drives.map(([, text]) => property(parseProperties(text, "file"), "file"));
  return files.filter((file) => file !== undefined).filter((file) => file.includes(":iso/"));
}

/** A machine that moved or went in the middle of the look was not seen. */
async function readConfig(
  { context, configs, missing }: Gathered,
  { node, externalId }: InventoryMachine,
): Promise<WholeConfig | undefined> {
  const known = configs.get(externalId);
  if (known !== undefined) return known;
  const read: ConfigRead = await context.configs.read({ node, externalId });
  if (!guard("survey-vm-read", read.type === "config")) missing.push(`the machine ${externalId}`);
  if (read.type === "config") configs.set(externalId, read.config);
  return read.type === "config" ? read.config : undefined;
}

function sizeOf(config: WholeConfig, { externalId, node, power }: InventoryMachine): number {
  const around = { externalId, node, power, pendingKeys: [], leavingDrives: [] };
  const { volumes } = readMachine(config, around);
  return volumes.reduce((sum, { sizeBytes = 0, isOwn }) => sum + (isOwn ? sizeBytes : 0), 0);
}

/** A storage that all nodes see is looked at once, from a node that can. */
function placesOf({ storages }: Inventory): InventoryStorage[] {
  const places = new Map<string, InventoryStorage>();
  for (const row of storages) {
    const key = placeName(row);
    if (places.get(key)?.isUsable !== true) places.set(key, row);
  }
  return [...places.values()];
}

function placeName({ name, node, isShared }: InventoryStorage): string {
  return isShared ? name : `${name} on ${node}`;
}

async function surveyVolumes(
  gathered: Gathered,
  places: readonly InventoryStorage[],
): Promise<SurveyedVolume[]> {
  const listed: SurveyedVolume[] = [];
  for (const place of places.filter(({ contents }) => contents.includes("Disks"))) {
    for (const row of await list(gathered, place, "images")) {
      const { volume, externalId } = row;
      if (externalId === undefined) continue;
      listed.push({ volume, externalId, ...sightOf(row), ...placed(place) });
    }
  }
  const found = looseVolumes(gathered, listed);
  if (found.length === 0) return [];
  const used = await usedNames(gathered);
  return found.filter(({ volume }) => {
    return guard("survey-volume-unused", !used.has(nameWithoutStorage(volume)));
  });
}

/** Those whose VM does not exist, or is on another node where it has no volume of that name. */
function looseVolumes(
  { inventory, suspects }: Gathered,
  listed: readonly SurveyedVolume[],
): SurveyedVolume[] {
  const guests = new Map(inventory.machines.map((machine) => [machine.externalId, machine]));
  const places = new Set(listed.map(({ volume, node }) => `${volume} on ${node}`));
  return listed.flatMap((found) => {
    const { volume, externalId } = found;
    const guest = guests.get(externalId);
    // Replication and migration keep the name: what the VM's node has too is a copy of that.
    const isCopy = guest !== undefined && places.has(`${volume} on ${guest.node}`);
    const isLoose = guest === undefined || (isElsewhere(found, guest) && !isCopy);
    if (!guard("survey-volume-without-vm", isLoose || suspects.has(volume))) return [];
    return [isLoose && guest !== undefined ? { ...found, vmNode: guest.node } : found];
  });
}

/** Of what is not a VM nothing is known but where it is. */
function isElsewhere({ node, isShared }: SurveyedVolume, guest: InventoryMachine): boolean {
  return guest.kind !== "Other" && guest.node !== node && !isShared;
}

/** The names of all volumes that any machine refers to now, or until its next start. */
async function usedNames(gathered: Gathered): Promise<ReadonlySet<string>> {
  const names = new Set<string>();
  for (const row of gathered.inventory.machines.filter(({ kind }) => kind !== "Other")) {
    const config = await readConfig(gathered, row);
    if (config === undefined) continue;
    for (const [, text] of [...drivesOf(config), ...config.pending.leavingDrives]) {
      for (const volume of volumesOf(text)) names.add(nameWithoutStorage(volume));
    }
  }
  return names;
}

async function surveyFiles(
  gathered: Gathered,
  places: readonly InventoryStorage[],
): Promise<SurveyedFile[]> {
  const found: SurveyedFile[] = [];
  for (const place of places) {
    const contents = [
      ...(place.contents.includes("ISOs") ? (["iso"] as const) : []),
      ...(place.contents.includes("Images") ? (["import"] as const) : []),
    ];
    for (const content of contents) {
      const use = content === "iso" ? "Disc" : "Disk";
      const rows = await list(gathered, place, content);
      const own = rows.map((row) => ({ ...row, fileName: fileNameOf(row.volume) }));
      for (const row of own.filter(isBerths)) {
        const { volume, fileName } = row;
        found.push({ volume, fileName, use, ...sightOf(row), ...placed(place) });
      }
    }
  }
  return found;
}

function isBerths({ fileName }: { readonly fileName: string }): boolean {
  return guard("survey-file-of-berth", isBerthFile(fileName));
}

function placed({ name, node, isShared }: InventoryStorage): {
  readonly storage: string;
  readonly node: string;
  readonly isShared: boolean;
} {
  return { storage: name, node, isShared };
}

async function list(
  { context, missing }: Gathered,
  place: InventoryStorage,
  content: "images" | "iso" | "import",
): Promise<readonly ListedVolume[]> {
  const at = { node: place.node, storage: place.name };
  const listed = place.isUsable ? await listVolumes(context.api, at, { content }) : undefined;
  const isRead = guard("survey-storage-read", listed?.ok === true);
  if (!isRead) missing.push(`the storage ${placeName(place)}`);
  return listed?.ok === true ? listed.value.filter((row) => row.content === content) : [];
}
