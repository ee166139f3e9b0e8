import { isAsSeen, isFollowed, isProvenOurs, isProvenVolume } from "../../../hypervisor/index.ts";
import type {
  Begun,
  ClaimedMachine,
  Destroy,
  Failure,
  Fence,
  RemoveVolume,
} from "../../../hypervisor/index.ts";
import { listText } from "../../../kernel/list-text.ts";
import { guard } from "../../../kernel/guard.ts";
import type { DriverContext } from "../context.ts";
import { machinePath, type WholeConfig } from "../config-reader.ts";
import { findLeftovers } from "../leftovers.ts";
import { anyNotRecorded, notMade } from "../recorded-volumes.ts";
import { drivesOf, referringDrives, volumesOf, type Drive } from "../references.ts";
import { parseVolume } from "../translate/volumes.ts";
import { userOf } from "../users.ts";
import { parseProperties, property } from "../wire/property-string.ts";
import { pathPart } from "../wire/wire.ts";
import { begunOf, refused, replaced } from "./begun.ts";
import { workOn } from "./saved-memory.ts";
import { standNow } from "./standing.ts";

/**
 * Destroys the machine. The server frees every volume of its id that the config, what is pending
 * or a snapshot refers to, also unused and hand-attached ones; so all of them must have been
 * accounted for. Volumes that nothing refers to are never swept along: by their names alone they
 * might be another cluster's (`destroy-unreferenced-disks`).
 */
export async function destroy(
  context: DriverContext,
  operation: Destroy,
  fence: Fence,
): Promise<Begun> {
  const stood = await standNow(context, operation);
  if (!stood.ok) return stood.begun;
  const { place, config } = stood.standing;
  const referring = await referringDrives(context.api, place, config);
  if (!referring.ok) return refused(referring.failure);
  const volumes = new Set(referring.value.flatMap(([, text]) => volumesOf(text)));
  const unaccounted = [...volumes].filter((volume) => {
    return parseVolume(volume)?.owner === place.externalId && !operation.volumes.includes(volume);
  });
  const drives = [...drivesOf(config), ...config.pending.leavingDrives];
  const shown = new Set(drives.flatMap(([, text]) => volumesOf(text)));
  const isAccounted = !unaccounted.some((volume) => shown.has(volume));
  if (!guard("destroy-accounted-volumes", isAccounted)) {
    return { outcome: "changed", detail: `not accounted for: ${listText(unaccounted)}` };
  }
  const memory = savedMemory(referring.value);
  const old = unaccounted.filter((volume) => {
    return !memory.has(volume) && !mayGo(operation.claim, volume);
  });
  if (!guard("destroy-snapshot-volumes", old.length === 0))
    return refused(inSnapshot(operation.claim, old));
  const kept = [...volumes].find((volume) => {
    return !guard("destroy-nothing-retained", !mustStay(operation.claim, volume));
  });
  if (kept !== undefined) return refused(stays(kept));
  const other = await otherVolume(context, operation, { config, volumes });
  if (other !== undefined) return refused(other);
  // Parameters of a DELETE go into the query: a body is refused with 501.
  const params = { purge: 1, "destroy-unreferenced-disks": 0 };
  const result = await context.api.write("DELETE", { path: machinePath(place), params }, () =>
    fence.mayWrite(),
  );
  return begunOf(result, `destroy VM ${place.externalId}`);
}

/**
 * A volume that is not the recorded one. A name in the configuration leads to whatever the storage
 * has under it now: where another file system is mounted since, that is another volume. So the
 * storage is asked about all that the server frees. Of an unused volume the configuration tells no
 * size, nor of one that somebody wrote there by hand: those must have exactly the recorded size.
 */
async function otherVolume(
  context: DriverContext,
  { claim, at }: Destroy,
  { config, volumes }: { readonly config: WholeConfig; readonly volumes: ReadonlySet<string> },
): Promise<Failure | undefined> {
  const unsized = drivesOf(config).filter(([slot, text]) => {
    const options = parseProperties(text, "file");
    const hasSize = property(options, "size") !== undefined || slot === "vmstate";
    return !hasSize && property(options, "media") !== "cdrom";
  });
  const exact = new Set(unsized.flatMap(([, text]) => volumesOf(text)));
  const own = [...volumes].filter((volume) => parseVolume(volume)?.owner === claim.externalId);
  const inPlace = new Set(own.filter((volume) => !exact.has(volume)));
  const leaving = [...exact, ...inPlace];
  return await anyNotRecorded(context, { claim, node: at.node, volumes: leaving, inPlace });
}

/** The memory that was saved with the VM or with a snapshot of it. A name does not tell that. */
function savedMemory(drives: readonly Drive[]): ReadonlySet<string> {
  const named = drives.filter(([slot]) => guard("destroy-saved-memory-key", slot === "vmstate"));
  return new Set(named.flatMap(([, text]) => volumesOf(text)));
}

/** What only a snapshot refers to: the Claim knows it, and lets it go. */
function mayGo({ volumes = [] }: ClaimedMachine, volume: string): boolean {
  return volumes.some((known) => {
    return known.id === volume && known.onDelete !== "Retain" && isProvenVolume(known);
  });
}

function inSnapshot({ externalId }: ClaimedMachine, volumes: readonly string[]): Failure {
  return {
    category: "OrphanedVolumes",
    message:
      `destroying VM ${externalId} would free volumes that only its snapshots refer to and that ` +
      `nobody accounted for: ${listText(volumes)}. Nothing was destroyed`,
    remedy: `Save what is in them, and remove the snapshots: qm listsnapshot ${externalId}.`,
  };
}

/**
 * Frees one volume that is provably ours. The server checks nothing here, not even whether a
 * running machine uses it, so every machine's config is read first.
 */
export async function removeVolume(
  context: DriverContext,
  operation: RemoveVolume,
  fence: Fence,
): Promise<Begun> {
  const { claim, node, volume } = operation;
  if (!guard("remove-volume-not-retained", !mustStay(claim, volume))) return refused(stays(volume));
  const leftovers = await findLeftovers(context, { ...claim, node });
  if (!leftovers.ok) return refused(leftovers.failure);
  const leftover = leftovers.value.find((candidate) => candidate.volume === volume);
  if (leftover === undefined) return await goneOrInUse(context, operation);
  if (!guard("remove-volume-as-seen", isAsSeen(operation.seen, leftover))) return replaced(volume);
  const isApproved = operation.isApproved === true && leftover.proof === "Probable";
  if (!guard("remove-volume-proven", isProvenOurs(leftover) || isApproved)) {
    return refused(notOurs(volume, leftover.proof));
  }
  const older = await notMade(context, { claim, node, row: leftover });
  if (older !== undefined) return refused(older);
  const needed = await neededNow(context, operation);
  if (needed !== undefined) return needed;
  const { storage } = leftover;
  const path = `/nodes/${pathPart(node)}/storage/${pathPart(storage)}/content/${pathPart(volume)}`;
  const result = await context.api.write("DELETE", { path }, () => fence.mayWrite());
  return begunOf(result, `remove the volume ${volume}`);
}

/** Whoever works on a machine may have made the volume for its memory a moment ago. */
async function neededNow(
  context: DriverContext,
  operation: RemoveVolume,
): Promise<Begun | undefined> {
  const { claim, node, volume } = operation;
  const { externalId } = claim;
  const isMemory = parseVolume(volume)?.isNamedState === true;
  const busy = isMemory ? await workOn(context, { node, externalId }) : undefined;
  if (busy !== undefined) return busy;
  const user = await usedBy(context, operation);
  if (!user.ok) return refused(user.failure);
  const isUnused = guard("remove-volume-unused", user.value === undefined);
  return isUnused ? undefined : refused(inUse(volume, user.value ?? ""));
}

/** Not left over: either nothing has it any more, or a machine does. */
async function goneOrInUse(context: DriverContext, operation: RemoveVolume): Promise<Begun> {
  const user = await usedBy(context, operation);
  if (!user.ok) return refused(user.failure);
  if (user.value !== undefined) return refused(inUse(operation.volume, user.value));
  return { outcome: "done" };
}

function usedBy(
  context: DriverContext,
  { volume, isStray: withSnapshots = false }: RemoveVolume,
): ReturnType<typeof userOf> {
  return userOf(context, volume, { withSnapshots });
}

/** What the Claim says to outlive its machine is not destroyed, whoever asks. */
export function mustStay({ volumes = [] }: ClaimedMachine, volume: string): boolean {
  return volumes.some((known) => {
    return known.id === volume && (known.onDelete === "Retain" || isFollowed(known));
  });
}

export function stays(volume: string): Failure {
  return {
    category: "OrphanedVolumes",
    message: `the volume ${volume} has to stay: its disk says onDelete: Retain, or was renamed by hand`,
    remedy: "Set onDelete: Delete for the disk, or hand the volume over to another machine first.",
  };
}

export function notOurs(volume: string, proof: string): Failure {
  const probably = "is only probably ours: nobody approved that it is removed";
  const strangers = proof === "Before" ? "existed before the VM" : "cannot be proven to be ours";
  const why = proof === "Probable" ? probably : strangers;
  return { category: "OrphanedVolumes", message: `the volume ${volume} ${why}` };
}

export function inUse(volume: string, externalId: string): Failure {
  return { category: "IdentityConflict", message: `VM ${externalId} uses the volume ${volume}` };
}
