import { answered, recordedSizes } from "../../hypervisor/index.ts";
import type { Answer, ClaimedMachine, Failure } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { guard } from "../../kernel/guard.ts";
import type { DriverContext, TaskSource } from "./context.ts";
import { type ListedVolume, listVolumes, nodeStorages } from "./storages.ts";
import { parseVolume } from "./translate/volumes.ts";

type ClaimVolume = NonNullable<ClaimedMachine["volumes"]>[number];

/**
 * The files of a shared storage have the time of their server, whose clock nobody can be asked for:
 * it may differ by so much from the node's. What a node itself writes is known within seconds.
 */
const fileServerSlackMs = 5 * 60_000;

/**
 * Whether what a storage lists is still the volume that the Claim recorded, where that is not in
 * the place of its disk: a free name is used again. Nobody can resize an unused volume through the
 * API, so another size proves another volume; and so does a time of creation, where the storage
 * tells one, after the volume was seen detached. `aheadMs`: what `aheadOfVolumes` said.
 */
export function isRecorded(known: ClaimVolume, row: ListedVolume, aheadMs: number): boolean {
  const { since } = known;
  const sizes = recordedSizes(known);
  const isSized = sizes.length === 0 || row.isApproximate === true || sizes.includes(row.sizeBytes);
  const sinceMs = Date.parse(since ?? "");
  const { createdMs = 0 } = row;
  const isNewer = createdMs - aheadMs > sinceMs + fileServerSlackMs;
  return guard("recorded-volume-size", isSized) && guard("recorded-volume-age", !isNewer);
}

/** How far the clock is ahead that dates what a node lists; asked only where a date is compared. */
export async function aheadOfVolumes(
  { api, clocks }: TaskSource,
  node: string,
  known: readonly ClaimVolume[],
): Promise<Answer<number>> {
  const isDated = known.some(({ role, since }) => role === "Disk" && since !== undefined);
  return isDated ? await clocks.aheadMs(api, node) : answered(0);
}

/** Why a volume that a node lists is not the recorded one; undefined: it is. */
export async function notThat(
  context: DriverContext,
  { known, node, row }: { known: ClaimVolume; node: string; row: ListedVolume },
): Promise<Failure | undefined> {
  const isTold = row.createdMs !== undefined;
  const ahead = isTold ? await aheadOfVolumes(context, node, [known]) : answered(0);
  if (!ahead.ok) return ahead.failure;
  if (isRecorded(known, row, ahead.value)) return undefined;
  const { size = "" } = known;
  return {
    category: "IdentityConflict",
    message:
      `the volume ${known.id}${ofDisk(known)} is not the one that was recorded: it has ` +
      `${row.sizeBytes} bytes, recorded are ${size}, or it was created since then. Somebody uses ` +
      "the name for another volume; Berth neither attaches nor destroys it",
    remedy:
      "Move this volume to another VM, or give it another name. Put the recorded one back, or " +
      "remove the entry of the disk from spec.disks.",
  };
}

/** Volumes of one Claim that are about to be destroyed, and the node that lists them. */
interface Leaving {
  readonly claim: ClaimedMachine;
  readonly node: string;
  readonly volumes: readonly string[];
  /** Those whose recorded size is from the configuration: their storage may have rounded it up. */
  readonly inPlace?: ReadonlySet<string>;
}

/** The same for a volume that is about to be destroyed, and has to be looked up. */
export async function notRecorded(
  context: DriverContext,
  { claim, node, volume }: { claim: ClaimedMachine; node: string; volume: string },
): Promise<Failure | undefined> {
  return await anyNotRecorded(context, { claim, node, volumes: [volume] });
}

/**
 * The same for several volumes. Each storage is listed once. One that no list shows is not there.
 */
export async function anyNotRecorded(
  context: DriverContext,
  { claim, node, volumes, inPlace = new Set() }: Leaving,
): Promise<Failure | undefined> {
  const known = (claim.volumes ?? []).filter(({ id }) => volumes.includes(id)).filter(holdsData);
  const listed = await volumesListed(context, node, known);
  if (!listed.ok) return listed.failure;
  for (const one of known) {
    const row = listed.value.find(({ volume }) => volume === one.id);
    if (row === undefined) continue;
    const other = inPlace.has(one.id)
      ? otherSize(one, row)
      : await notThat(context, { known: one, node, row });
    const why = other ?? (await notMade(context, { claim, node, row }));
    if (why !== undefined) return why;
  }
  return undefined;
}

/** The server writes a cloud-init drive and saved memory itself: a person keeps nothing there. */
function holdsData({ role }: ClaimVolume): boolean {
  return role !== "CloudInit" && role !== "State";
}

async function volumesListed(
  { api }: DriverContext,
  node: string,
  known: readonly ClaimVolume[],
): Promise<Answer<readonly ListedVolume[]>> {
  const places = known.map(({ id }) => {
    const { owner: vmid = "", storage = "" } = parseVolume(id) ?? {};
    return { storage, vmid };
  });
  const rows: ListedVolume[] = [];
  for (const [at, { storage, vmid }] of places.entries()) {
    const first = places.findIndex((place) => place.storage === storage && place.vmid === vmid);
    if (first !== at) continue;
    const listed = await listVolumes(api, { node, storage }, { content: "images", vmid });
    if (!listed.ok) return listed;
    rows.push(...listed.value);
  }
  return answered(rows);
}

/** Storages round the size of a volume up: LVM to extents of 4 MiB, or as they were set up. */
const roundingBytes = 64 * 1024 ** 2;

/** The size in the configuration is the recorded one; the storage may hold another volume. */
function otherSize(known: ClaimVolume, row: ListedVolume): Failure | undefined {
  const sizes = recordedSizes(known);
  const isUnknown = sizes.length === 0 || row.isApproximate === true;
  const isSized = sizes.some((bytes) => {
    return row.sizeBytes >= bytes && row.sizeBytes - bytes <= roundingBytes;
  });
  if (guard("destroyed-volume-size", isUnknown || isSized)) return undefined;
  const { id, size = "" } = known;
  const rescan = `qm rescan --vmid ${parseVolume(id)?.owner ?? ""}`;
  return {
    category: "IdentityConflict",
    message:
      `the volume ${id}${ofDisk(known)} is not the one that was recorded: its storage lists ` +
      `${row.sizeBytes} bytes, recorded are ${size}. Nothing was destroyed`,
    remedy: `If it is Berth's own, grown on the storage: ${rescan}. ${keepOrRemove(known)}`,
  };
}

/**
 * Why a listed volume cannot be the one that an operation of ours made for the Claim: it is older
 * than that operation. A newer time proves nothing. For a file the server tells the time of its
 * last change (`st_ctime`; pve-storage, file_size_info), which every write moves forward.
 *
 * Volumes that may be older than the Claim have no `madeBy`: those that were adopted, taken over,
 * taken back from a disk-holder VM or a Released Claim, or recorded by a release before 0.2.
 */
export async function notMade(
  context: DriverContext,
  { claim, node, row }: { claim: ClaimedMachine; node: string; row: Dated },
): Promise<Failure | undefined> {
  const known = claim.volumes?.find(({ id }) => id === row.volume);
  const begun = known && begunAt(claim, known);
  if (known === undefined || begun === undefined || row.createdMs === undefined) return undefined;
  const ahead = await context.clocks.aheadMs(context.api, node);
  if (!ahead.ok) return ahead.failure;
  const createdMs = row.createdMs - ahead.value;
  const isOlder = createdMs < Date.parse(begun) - fileServerSlackMs;
  if (guard("destroyed-volume-not-older", !isOlder)) return undefined;
  return await olderFailure(context, { known, node, begun, createdMs });
}

type Dated = Pick<ListedVolume, "volume" | "createdMs">;

/** When the operation began that made the volume, or before that; undefined: none of ours did. */
function begunAt(
  { allocation, reservedAt }: ClaimedMachine,
  { proof, madeBy }: ClaimVolume,
): string | undefined {
  const isMade = proof === "Config" || proof === "TaskLog" || proof === "Named";
  if (!isMade || madeBy === undefined) return undefined;
  return allocation?.operation === madeBy ? allocation.since : reservedAt;
}

async function olderFailure(
  { api }: DriverContext,
  { known, node, begun, createdMs }: Older,
): Promise<Failure | undefined> {
  const { id } = known;
  const storages = await nodeStorages(api, node);
  if (!storages.ok) return storages.failure;
  const type = storages.value.find(({ name }) => name === parseVolume(id)?.storage)?.type;
  // A linked clone is a snapshot of the base's subvolume there, with the times of its files.
  if (type === "btrfs") return undefined;
  return {
    category: "IdentityConflict",
    message:
      `the volume ${id}${ofDisk(known)} is not the one that Berth created: its storage says that ` +
      `it was last changed at ${formatTime(createdMs)}, and Berth began to create its own at ` +
      `${begun}. Somebody had a volume of this name before; its storage was probably not mounted ` +
      "when Berth created the VM. Nothing was destroyed",
    remedy: keepOrRemove(known),
  };
}

interface Older {
  readonly known: ClaimVolume;
  readonly node: string;
  readonly begun: string;
  readonly createdMs: number;
}

function keepOrRemove({ id, disk = "" }: ClaimVolume): string {
  const keep =
    disk === ""
      ? "To keep the volume, move it to another VM."
      : `To keep the volume, set onDelete: Retain for the disk ${disk}: Berth transfers it to a ` +
        "disk-holder VM.";
  return `${keep} If nobody needs it, remove it on the hypervisor: pvesm free ${id}.`;
}

function ofDisk({ disk }: ClaimVolume): string {
  return disk === undefined ? "" : ` of the disk ${disk}`;
}
