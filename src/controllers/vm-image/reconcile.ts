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
import { bringTo } from "./bring.ts";
import type { ImageDeps } from "./deps.ts";
import { fileNameOf, isAt, planTargets, unmetWishes, type Copy, type ImageHost } from "./plan.ts";
import { removeOld, type Removed } from "./removal.ts";
import { findVolume, imageStorages } from "./steps.ts";
import { heldMs, mayBeSilent } from "./silence.ts";
import { memoryOf, rest, trouble, waitForHypervisor } from "./writing.ts";

/** A volume that was found is not looked for again so soon, however many machines come from it. */
const foundMs = 15 * 60_000;
/** A node that did not tell what it has is asked again. */
const partialMs = 30_000;
const uploadMs = 2_000;

/** Finds out where an image is, and brings it to one more place where it is needed. */
export async function reconcileImage(key: string, deps: ImageDeps): Promise<Outcome> {
  const found = deps.images.get(key);
  if (found === undefined) {
    deps.memory.delete(key);
    return settled;
  }
  const image = await holdInUse(found, deps);
  if (image === undefined) return leave(found, deps);
  return image.spec.source.http === undefined ? find(image, deps) : bring(image, deps);
}

/** A volume or a template is where it is; only whether it can be seen is found out. */
async function find(image: VMImage, deps: ImageDeps): Promise<Outcome> {
  const { volume, template } = image.spec.source;
  const name = (volume ?? template)?.hypervisorRef.name ?? "";
  // That is no failure, and what is found wakes everybody.
  if (mayBeSilent(name, deps)) return again("HeldBack", heldMs);
  const reach = deps.connections.of(name);
  if (reach.is === "away") {
    return waitForHypervisor(image, deps, { copies: [], away: reach, hypervisor: name });
  }
  if (volume === undefined) return rest(image, deps, []);
  if (wasFoundLately(image, deps, reach.connection)) return settled;
  const found = await findVolume(reach.connection, volume.id);
  if (!found.ok) return trouble(image, deps, { copies: [], failure: found.failure });
  const { copies, isWhole } = found.value;
  // A disk of a machine is no image file, and yet can be copied: only preflight can tell.
  const outcome = await rest(image, deps, copies);
  if (isWhole) return outcome;
  delete memoryOf(image, deps).looked;
  return again("Partial", partialMs);
}

/** If not, it is noted that it is looked for now. */
function wasFoundLately(image: VMImage, deps: ImageDeps, { inventory }: Connection): boolean {
  const memory = memoryOf(image, deps);
  const { generation = 0 } = image.metadata;
  const nowMs = deps.clock.nowMs();
  const { looked } = memory;
  const where = imageStorages(inventory)
    .map(({ node, name }) => `${node}/${name}`)
    .toSorted()
    .join();
  const isSame = looked?.generation === generation && looked.where === where;
  const isFound = (image.status?.copies ?? []).length > 0;
  if (isSame && isFound && nowMs - looked.atMs < foundMs) return true;
  memory.looked = { atMs: nowMs, generation, where };
  return false;
}

/** Holds the finalizer while machines refer to it. Resolves with undefined when it may go. */
async function holdInUse(image: VMImage, deps: ImageDeps): Promise<VMImage | undefined> {
  const objects = deps.client.of(vmImageKind);
  const isUsed = deps.vms.byIndex("image", objectKey(image.metadata)).length > 0;
  const { deletionTimestamp } = image.metadata;
  if (isUsed && deletionTimestamp === undefined) {
    return deps.images.note(await addFinalizer<VMImage>(objects, image, finalizers.inUse));
  }
  if (isUsed) return image;
  // What goes away lets go at the very end, when the files that it brought are gone.
  if (deletionTimestamp !== undefined) return undefined;
  return removeFinalizer<VMImage>(objects, image, finalizers.inUse);
}

/** Nobody needs it any more: the files that Berth brought for it go, and then the object. */
async function leave(image: VMImage, deps: ImageDeps): Promise<Outcome> {
  const { upload } = memoryOf(image, deps);
  // What is on its way here would come after everybody has gone.
  if (upload !== undefined && upload.begun === undefined) return again("Uploading", uploadMs);
  const removing = await removeOld(image, deps, () => true);
  if (removing !== undefined && removing !== "gone") return concluded(image, deps, removing);
  const objects = deps.client.of(vmImageKind);
  const left = await removeFinalizer<VMImage>(objects, image, finalizers.image);
  if (left !== undefined) await removeFinalizer<VMImage>(objects, left, finalizers.inUse);
  return settled;
}

function concluded(
  image: VMImage,
  deps: ImageDeps,
  removing: Exclude<Removed, "gone">,
): Promise<Outcome> | Outcome {
  const copies = image.status?.copies ?? [];
  if ("away" in removing) return waitForHypervisor(image, deps, { copies, ...removing });
  if (!("failure" in removing)) return removing;
  return trouble(image, deps, { copies, ...removing });
}

async function bring(image: VMImage, deps: ImageDeps): Promise<Outcome> {
  const key = objectKey(image.metadata);
  const fileName = fileNameOf(image);
  // Of a name that the image had before it was edited.
  const removing = await removeOld(image, deps, (copy) => {
    return copy.fileName !== undefined && copy.fileName !== fileName;
  });
  if (removing !== undefined && removing !== "gone") return concluded(image, deps, removing);
  const vms = deps.vms.byIndex("image", key);
  const hosts = hostsOf(deps);
  const copies: Copy[] = (image.status?.copies ?? []).filter(({ state }) => state === "Present");
  const targets = planTargets(image, vms, hosts.map(hostOf));
  const target = targets.find((one) => !copies.some((copy) => isAt(copy, one)));
  const [unmet] = unmetWishes(image, vms, hosts.map(hostOf));
  if (target === undefined && unmet !== undefined) {
    return trouble(image, deps, { copies, failure: unmet });
  }
  if (target === undefined) return rest(image, deps, copies);
  const connection = hosts.find(({ name }) => name === target.hypervisor);
  if (connection === undefined) return rest(image, deps, copies);
  return bringTo(image, deps, { target, connection, copies });
}

function hostsOf({ connections, hypervisors }: ImageDeps): Connection[] {
  return hypervisors.list().flatMap(({ metadata }) => {
    const reach = connections.of(metadata.name ?? "");
    return reach.is === "ready" ? [reach.connection] : [];
  });
}

function hostOf({ name, spec, inventory }: Connection): ImageHost {
  return { name, imageStorage: spec.defaults?.imageStorage, inventory };
}
