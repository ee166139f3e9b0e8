import { answered, failed, isAsSeen, isSeedOf } from "../../../hypervisor/index.ts";
import type { Answer, Begun, ClaimedMachine, Failure, Fence } from "../../../hypervisor/index.ts";
import type { PutSeed, RemoveSeed, SeenFile } from "../../../hypervisor/index.ts";
import { guard } from "../../../kernel/guard.ts";
import type { WholeConfig } from "../config-reader.ts";
import type { DriverContext } from "../context.ts";
import { readFailureOf } from "../errors.ts";
import type { JsonObject } from "../../../kernel/json.ts";
import { drivesOf, volumesOf } from "../references.ts";
import { listVolumes, sightOf } from "../storages.ts";
import { discVolume } from "../translate/seed.ts";
import { userOf } from "../users.ts";
import { isSet, rowsOf, textOf } from "../wire/rows.ts";
import { pathPart } from "../wire/wire.ts";
import { begunOf, refused, replaced } from "./begun.ts";

/**
 * Uploads a disc. The server copies it onto its final name, so a crash leaves part of it there: it
 * is whole when its size is right. To send it again is safe, since its name tells its content.
 */
export async function putSeed(
  context: DriverContext,
  operation: PutSeed,
  fence: Fence,
): Promise<Begun> {
  const { claim, node, storage, fileName, content } = operation;
  const isOwn = isSeedOf(claim.identity, fileName);
  if (!guard("put-seed-of-own-vm", isOwn)) return refused(notASeed(claim, fileName));
  const discs = await listVolumes(context.api, { node, storage }, { content: "iso" });
  if (!discs.ok) return refused(discs.failure);
  const volume = discVolume(storage, fileName);
  const there = discs.value.find((row) => row.volume === volume);
  if (there?.sizeBytes === content.length) return { outcome: "done" };
  const path = `/nodes/${pathPart(node)}/storage/${pathPart(storage)}/upload`;
  const result = await context.api.write(
    "POST",
    { path, params: { content: "iso" }, file: { name: fileName, content } },
    () => fence.mayWrite(),
  );
  return begunOf(result, `upload ${fileName} to ${storage} on ${node}`);
}

/**
 * A seed may hold secrets, so it goes as soon as nobody needs it. Gone already: done. A machine
 * that people moved left it behind on the node that it was made on.
 */
export async function removeSeed(
  context: DriverContext,
  operation: RemoveSeed,
  fence: Fence,
): Promise<Begun> {
  const { claim, node, storage, fileName } = operation;
  const isOwn = isSeedOf(claim.identity, fileName);
  if (!guard("remove-seed-of-own-vm", isOwn)) return refused(notASeed(claim, fileName));
  const volume = discVolume(storage, fileName);
  const found = await findDisc(context, { node, storage, volume });
  if (!found.ok) return refused(found.failure);
  if (found.value === undefined) return { outcome: "done" };
  const { node: where, sight } = found.value;
  if (!guard("remove-seed-as-seen", isAsSeen(operation.seen, sight))) return replaced(volume);
  const holder = await holderOf(context, operation, volume);
  if (!holder.ok) return refused(holder.failure);
  if (!guard("remove-seed-ejected", holder.value === undefined)) {
    const message = `VM ${holder.value} still holds ${fileName}: it has to be ejected first`;
    return refused({ category: "DependencyNotReady", message });
  }
  const path = `/nodes/${pathPart(where)}/storage/${pathPart(storage)}/content/${pathPart(volume)}`;
  const result = await context.api.write("DELETE", { path }, () => fence.mayWrite());
  return begunOf(result, `remove ${fileName} from ${storage} on ${where}`);
}

/** Its own machine, where its object sees to it; else any machine, wherever it is. */
async function holderOf(
  context: DriverContext,
  { claim, node, isStray = false }: RemoveSeed,
  volume: string,
): Promise<Answer<string | undefined>> {
  if (isStray) return await userOf(context, volume, { withSnapshots: true });
  const { externalId } = claim;
  const read = await context.configs.read({ node, externalId });
  if (read.type === "failed") return failed(read.failure);
  return answered(read.type === "config" && holds(read.config, volume) ? externalId : undefined);
}

interface Disc {
  readonly node: string;
  readonly storage: string;
  readonly volume: string;
}

/** A disc on the storage of a node. */
interface FoundDisc {
  readonly node: string;
  readonly sight: SeenFile;
}

/** The node on whose storage a disc lies: the machine's own, or another that can be asked. */
async function findDisc(
  { api }: DriverContext,
  disc: Disc,
): Promise<Answer<FoundDisc | undefined>> {
  const { node, storage } = disc;
  const own = await discOn(api, disc);
  if (!own.ok || own.value !== undefined) return own;
  const result = await api.get("/cluster/resources", { type: "storage" });
  if (result.type !== "data") return failed(readFailureOf(result, "list the storages"));
  for (const other of othersOf(rowsOf(result.data), { node, storage })) {
    const there = await discOn(api, { ...disc, node: other });
    if (!there.ok || there.value !== undefined) return there;
  }
  return answered(undefined);
}

async function discOn(
  api: DriverContext["api"],
  { node, storage, volume }: Disc,
): Promise<Answer<FoundDisc | undefined>> {
  const discs = await listVolumes(api, { node, storage }, { content: "iso" });
  if (!discs.ok) return discs;
  const row = discs.value.find((candidate) => candidate.volume === volume);
  return answered(row && { node, sight: sightOf(row) });
}

/** The other nodes that have a storage of this name for themselves. What is away is swept later. */
function othersOf(rows: readonly JsonObject[], own: Omit<Disc, "volume">): string[] {
  return rows
    .filter((row) => textOf(row, "storage") === own.storage && !isSet(row, "shared"))
    .filter((row) => textOf(row, "status") === "available")
    .map((row) => textOf(row, "node"))
    .filter((node) => node !== own.node);
}

/** Also while it only goes with the next start. */
function holds(config: WholeConfig, volume: string): boolean {
  const drives = [...drivesOf(config), ...config.pending.leavingDrives];
  return drives.some(([, text]) => volumesOf(text).includes(volume));
}

function notASeed({ identity }: ClaimedMachine, fileName: string): Failure {
  const message = `${fileName} is not the seed of the machine ${identity}`;
  return { category: "IdentityConflict", message };
}
