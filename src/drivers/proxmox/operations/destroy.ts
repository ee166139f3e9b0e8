import type {
  Begun,
  ClaimedMachine,
  Destroy,
  Failure,
  Fence,
  RemoveVolume,
} from "../../../hypervisor/index.ts";
import type { DriverContext } from "../context.ts";
import { machinePath } from "../config-reader.ts";
import { findLeftovers } from "../leftovers.ts";
import { drivesOf, referencedVolumes, volumesOf } from "../references.ts";
import { parseVolume } from "../translate/volumes.ts";
import { userOf } from "../users.ts";
import { pathPart } from "../wire/wire.ts";
import { begunOf, refused } from "./begun.ts";
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
  const volumes = await referencedVolumes(context.api, place, config);
  if (!volumes.ok) return refused(volumes.failure);
  const unaccounted = [...volumes.value].filter((volume) => {
    return parseVolume(volume)?.owner === place.externalId && !operation.volumes.includes(volume);
  });
  const drives = [...drivesOf(config), ...config.pending.leavingDrives];
  const shown = new Set(drives.flatMap(([, text]) => volumesOf(text)));
  if (unaccounted.some((volume) => shown.has(volume))) {
    return { outcome: "changed", detail: `not accounted for: ${unaccounted.join(", ")}` };
  }
  const old = unaccounted.filter((volume) => !mayGo(operation.claim, volume));
  if (old.length > 0) return refused(inSnapshot(operation.claim, old));
  const kept = [...volumes.value].find((volume) => mustStay(operation.claim, volume));
  if (kept !== undefined) return refused(stays(kept));
  // Parameters of a DELETE go into the query: a body is refused with 501.
  const params = { purge: 1, "destroy-unreferenced-disks": 0 };
  const result = await context.api.write("DELETE", { path: machinePath(place), params }, () =>
    fence.mayWrite(),
  );
  return begunOf(result, `destroy VM ${place.externalId}`);
}

/** What only a snapshot refers to: saved memory, or what the Claim knows and lets go. */
function mayGo({ volumes = [] }: ClaimedMachine, volume: string): boolean {
  if (parseVolume(volume)?.isState === true) return true;
  return volumes.some(({ id, onDelete }) => id === volume && onDelete !== "Retain");
}

function inSnapshot({ externalId }: ClaimedMachine, volumes: readonly string[]): Failure {
  return {
    category: "OrphanedVolumes",
    message:
      `destroying VM ${externalId} would free volumes that only its snapshots refer to and that ` +
      `nobody accounted for: ${volumes.join(", ")}. Nothing was destroyed`,
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
  if (mustStay(claim, volume)) return refused(stays(volume));
  const leftovers = await findLeftovers(context, { ...claim, node });
  if (!leftovers.ok) return refused(leftovers.failure);
  const leftover = leftovers.value.find((candidate) => candidate.volume === volume);
  if (leftover === undefined) return await goneOrInUse(context, operation);
  if (leftover.proof !== "Claimed" && leftover.proof !== "MadeUnderMark") {
    return refused(notOurs(volume, leftover.proof));
  }
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
  const isState = parseVolume(volume)?.isState === true;
  const busy = isState ? await workOn(context, { node, externalId }) : undefined;
  if (busy !== undefined) return busy;
  const user = await usedBy(context, operation);
  if (!user.ok) return refused(user.failure);
  return user.value === undefined ? undefined : refused(inUse(volume, user.value));
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
  return volumes.some(({ id, onDelete }) => id === volume && onDelete === "Retain");
}

export function stays(volume: string): Failure {
  return {
    category: "OrphanedVolumes",
    message: `the volume ${volume} has to stay: its disk says onDelete: Retain`,
    remedy: "Set onDelete: Delete for the disk, or hand the volume over to another machine first.",
  };
}

export function notOurs(volume: string, proof: string): Failure {
  const why = proof === "Before" ? "was there before Berth" : "cannot be told to be ours";
  return { category: "OrphanedVolumes", message: `the volume ${volume} ${why}` };
}

export function inUse(volume: string, externalId: string): Failure {
  return { category: "IdentityConflict", message: `VM ${externalId} uses the volume ${volume}` };
}
