import { isAsSeen, isBerthFile } from "../../../hypervisor/index.ts";
import type { Begun, DiscardVolume, Failure, Fence } from "../../../hypervisor/index.ts";
import { guard } from "../../../kernel/guard.ts";
import type { DriverContext } from "../context.ts";
import { classifyError, readFailureOf } from "../errors.ts";
import { unseenRights } from "../rights-to-see.ts";
import { listVolumes, sightOf } from "../storages.ts";
import { fileNameOf, parseVolume } from "../translate/volumes.ts";
import { userOf } from "../users.ts";
import { pathPart } from "../wire/wire.ts";
import { begunOf, refused, replaced } from "./begun.ts";
import { inUse } from "./destroy.ts";
import { readerNow } from "./remove-image.ts";

/**
 * Frees a volume on a person's word. The server would free any, also one that runs; so everything
 * that could still need it is looked at in this very step: the machine of its id, the present,
 * pending and snapshotted form of every other, and work that may be reading it.
 */
export async function discardVolume(
  context: DriverContext,
  operation: DiscardVolume,
  fence: Fence,
): Promise<Begun> {
  const { node, volume, confirmed, seen } = operation;
  if (!guard("discard-confirmed", confirmed === volume)) return refused(notTyped(volume));
  const storage = parseVolume(volume)?.storage ?? "";
  const there = await listVolumes(context.api, { node, storage }, {});
  if (!there.ok) return refused(there.failure);
  const row = there.value.find((candidate) => candidate.volume === volume);
  if (row === undefined) return { outcome: "done" };
  const needed = await neededBy(context, volume);
  if (needed !== undefined) return refused(needed);
  const isSame = isAsSeen(seen, sightOf(row));
  return guard("discard-as-seen", isSame) ? free(context, operation, fence) : replaced(volume);
}

/** Nothing speaks against it but work that may be reading it. */
async function free(
  context: DriverContext,
  { node, volume }: DiscardVolume,
  fence: Fence,
): Promise<Begun> {
  const storage = parseVolume(volume)?.storage ?? "";
  const reader = await readerNow(context);
  if (!reader.ok) return refused(reader.failure);
  if (!guard("discard-no-reader", reader.value === undefined)) {
    return { outcome: "blocked", waitsFor: reader.value ?? "" };
  }
  const path = `/nodes/${pathPart(node)}/storage/${pathPart(storage)}/content/${pathPart(volume)}`;
  const result = await context.api.write("DELETE", { path }, () => fence.mayWrite());
  return begunOf(result, `remove the volume ${volume}`);
}

/** Why it has to stay, if it has to. */
async function neededBy(context: DriverContext, volume: string): Promise<Failure | undefined> {
  const [unseen] = await unseenRights(context);
  if (!guard("discard-sees-all", unseen === undefined)) return notSeen(volume, unseen ?? "");
  const owner = parseVolume(volume)?.owner;
  const standing = owner === undefined ? notAFile(volume) : await machineOf(context, owner, volume);
  if (standing !== undefined) return standing;
  const user = await userOf(context, volume, { withSnapshots: true });
  if (!user.ok) return user.failure;
  const isUnused = guard("discard-unused", user.value === undefined);
  return isUnused ? undefined : inUse(volume, user.value ?? "");
}

function notAFile(volume: string): Failure | undefined {
  if (guard("discard-file-of-berth", isBerthFile(fileNameOf(volume)))) return undefined;
  const message = `${volume} is no volume of a machine and no file of Berth's`;
  return { category: "IdentityConflict", message };
}

/** What bears the id of a machine that is there goes with that machine, if ever. */
async function machineOf(
  { api }: DriverContext,
  owner: string,
  volume: string,
): Promise<Failure | undefined> {
  const probe = await api.get("/cluster/nextid", { vmid: owner });
  if (guard("discard-without-vm", probe.type === "data")) return undefined;
  const isTaken = probe.type === "error" && classifyError(probe).meaning === "taken";
  if (isTaken || probe.type === "data") return inUse(volume, owner);
  return readFailureOf(probe, `ask whether the id ${owner} is free`);
}

function notTyped(volume: string): Failure {
  const message = `nobody confirmed the volume ${volume} by its id`;
  return { category: "ConfigurationError", message };
}

function notSeen(volume: string, what: string): Failure {
  return {
    category: "PermissionDenied",
    message: `nobody can tell whether ${volume} is in use: the token may not see ${what}`,
    remedy: "berth doctor prints the commands that grant it.",
  };
}
