import { answered, recordedSizes } from "../../hypervisor/index.ts";
import type { Answer, ClaimedMachine, Failure } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { DriverContext, TaskSource } from "./context.ts";
import { type ListedVolume, listVolumes } from "./storages.ts";
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
  const { size = "", disk = "" } = known;
  const name = disk === "" ? "" : ` of the disk ${disk}`;
  return {
    category: "IdentityConflict",
    message:
      `the volume ${known.id}${name} is not the one that was recorded: it has ` +
      `${row.sizeBytes} bytes, recorded are ${size}, or it was created since then. Somebody uses ` +
      "the name for another volume; Berth neither attaches nor destroys it",
    remedy:
      "Move this volume to another VM, or give it another name. Put the recorded one back, or " +
      "remove the entry of the disk from spec.disks.",
  };
}

/** The same for a volume that has to be looked up. One that no list shows is not there. */
export async function notRecorded(
  context: DriverContext,
  { claim, node, volume }: { claim: ClaimedMachine; node: string; volume: string },
): Promise<Failure | undefined> {
  const known = claim.volumes?.find(({ id }) => id === volume);
  if (known === undefined) return undefined;
  const { owner = "", storage = "" } = parseVolume(volume) ?? {};
  const listed = await listVolumes(
    context.api,
    { node, storage },
    { content: "images", vmid: owner },
  );
  if (!listed.ok) return listed.failure;
  const row = listed.value.find((one) => one.volume === volume);
  return row && (await notThat(context, { known, node, row }));
}
