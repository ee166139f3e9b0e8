import { finalizers, vmImageKind } from "../../api/index.ts";
import type { VMImage } from "../../api/index.ts";
import { objectKey } from "../../kernel/object.ts";
import {
  addFinalizer,
  again,
  removeFinalizer,
  settled,
  type Outcome,
} from "../../runtime/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import { isRetryAsked } from "../operations/index.ts";
import { withRecords } from "./copies.ts";
import { missingReports } from "./plan.ts";
import { bringToPlaces } from "./places.ts";
import { recoverCopies } from "./recovery.ts";
import { removeOld } from "./removal.ts";
import { heldMs, mayBeSilent } from "./silence.ts";
import { soonest } from "./soonest.ts";
import { findVolume, imageStorages } from "./steps.ts";
import { copiesOf, type ImageDeps, type ImageTurn } from "./turn.ts";
import { forgetLooks, validFor } from "./watch.ts";
import { rest, trouble, waitForHypervisor } from "./writing.ts";

/** A node that did not say what it has is asked again. */
const partialMs = 30_000;

/** Finds out where an image is, and brings it to the places where it is needed. */
export async function reconcileImage(key: string, deps: ImageDeps): Promise<Outcome> {
  const found = deps.images.get(key);
  if (found === undefined) {
    deps.memory.delete(key);
    return settled;
  }
  const cache = deps.memory.get(key) ?? { seen: new Map(), checked: new Map() };
  deps.memory.set(key, cache);
  const image = await holdInUse(found, deps);
  const { failure } = found.status ?? {};
  const turn: ImageTurn = { key, deps, cache, failure, image: withRecords(image ?? found) };
  if (isRetryAsked(turn.image)) forgetLooks(turn);
  await recoverCopies(turn);
  if (image === undefined) return leave(turn);
  return image.spec.source.http === undefined ? find(turn) : bringToPlaces(turn);
}

/** A volume or a template is where it is; only whether it can be seen is found out. */
async function find(turn: ImageTurn): Promise<Outcome> {
  const { deps, image } = turn;
  const { volume, template } = image.spec.source;
  const name = (volume ?? template)?.hypervisorRef.name ?? "";
  // That is no failure, and what is found wakes everybody.
  if (mayBeSilent(name, deps)) return again("HeldBack", heldMs);
  const reach = deps.connections.of(name);
  if (reach.is === "away") {
    return waitForHypervisor(turn, { copies: [], away: reach, hypervisor: name });
  }
  const { connection } = reach;
  return volume ? findListed(turn, connection, volume.id) : findTemplate(turn, connection);
}

async function findListed(turn: ImageTurn, connection: Connection, id: string): Promise<Outcome> {
  const { deps, cache, key } = turn;
  const place = { hypervisor: connection.name };
  const reports = missingReports(deps.vms.byIndex("image", key), place);
  const validMs = lookValidFor(turn, connection, reports);
  if (validMs > 0) return reports === "" ? settled : again("Watch", validMs);
  const found = await findVolume(connection, id);
  if (!found.ok) return trouble(turn, found.failure, { copies: [] });
  const { copies, isWhole } = found.value;
  // A disk of a VM is no image file, and yet can be copied: only preflight can tell.
  const outcome = await rest(turn, copies, { isListed: copies.length > 0 });
  if (isWhole) return outcome;
  delete cache.looked;
  return again("Partial", partialMs);
}

/** A template is a VM: the bulk list shows whether it is there. */
async function findTemplate(turn: ImageTurn, { inventory }: Connection): Promise<Outcome> {
  const { externalId = "" } = turn.image.spec.source.template ?? {};
  const isListed = inventory.machines.some((row) => row.externalId === externalId);
  return rest(turn, [], { isListed });
}

/** How long what was found still counts. If no longer, it is noted that it is looked for now. */
function lookValidFor(
  { image, deps, cache }: ImageTurn,
  { inventory }: Connection,
  reports: string,
): number {
  const { generation = 0 } = image.metadata;
  const nowMs = deps.clock.nowMs();
  const { looked } = cache;
  const where = imageStorages(inventory)
    .map(({ node, name }) => `${node}/${name}`)
    .toSorted()
    .join();
  const isSame = looked?.generation === generation && looked.where === where;
  const isFound = (image.status?.copies ?? []).length > 0;
  const validMs = looked ? looked.atMs + validFor(reports, looked.reports) - nowMs : 0;
  if (isSame && isFound && validMs > 0) return validMs;
  cache.looked = { atMs: nowMs, generation, where, reports };
  return 0;
}

/** Holds the finalizer while VMs refer to it. Resolves with undefined when it may go. */
async function holdInUse(image: VMImage, deps: ImageDeps): Promise<VMImage | undefined> {
  const objects = deps.client.of(vmImageKind);
  const isUsed = deps.vms.byIndex("image", objectKey(image.metadata)).length > 0;
  const { deletionTimestamp } = image.metadata;
  if (isUsed && deletionTimestamp === undefined) {
    return deps.images.note(await addFinalizer<VMImage>(objects, image, finalizers.inUse));
  }
  if (isUsed) return image;
  // What is deleted drops its finalizer at the very end, when the files that it brought are gone.
  if (deletionTimestamp !== undefined) return undefined;
  return removeFinalizer<VMImage>(objects, image, finalizers.inUse);
}

/** Nobody needs it any more: the files that Berth brought for it go, and then the object. */
async function leave(turn: ImageTurn): Promise<Outcome> {
  const removing = await removeOld(turn, () => true);
  if (copiesOf(turn).length > 0) return soonest(removing);
  const { deps, image } = turn;
  const objects = deps.client.of(vmImageKind);
  const left = await removeFinalizer<VMImage>(objects, image, finalizers.image);
  if (left !== undefined) await removeFinalizer<VMImage>(objects, left, finalizers.inUse);
  return settled;
}
