import { finalizers, vmImageKind } from "../../api/index.ts";
import type { VMImage } from "../../api/index.ts";
import { categoryPolicies } from "../../hypervisor/index.ts";
import type { Begun, Failure } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { objectKey } from "../../kernel/object.ts";
import {
  addFinalizer,
  again,
  nextAttempt,
  removeFinalizer,
  settled,
  stalled,
  writeStatus,
  type Outcome,
} from "../../runtime/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import type { ImageDeps, ImageMemory } from "./deps.ts";
import {
  fileNameOf,
  isAt,
  planTargets,
  unmetWishes,
  useOf,
  type Copy,
  type ImageHost,
  type Target,
} from "./plan.ts";
import { removeOld } from "./removal.ts";
import { imageStatusOf, type ImageView } from "./status.ts";
import { comingCopy, findFile, findVolume } from "./steps.ts";
import { openSource, startUpload, type Upload } from "./upload.ts";
import { addressRefusal, addressRule } from "./web.ts";

const pollMsFirst = 200;
const pollMsMost = 2_000;
const progressMs = 10_000;
const fencedMs = 1_000;
const downloadMs = 60_000;
/** A volume that was found is not looked for again so soon, however many machines come from it. */
const foundMs = 15 * 60_000;

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
  const reach = deps.connections.of((volume ?? template)?.hypervisorRef.name ?? "");
  if (reach.is === "away") return trouble(image, deps, { copies: [], failure: reach.failure });
  if (volume === undefined) return rest(image, deps, []);
  if (wasFoundLately(image, deps)) return settled;
  const copy = await findVolume(reach.connection, volume.id);
  if (!copy.ok) return trouble(image, deps, { copies: [], failure: copy.failure });
  // A disk of a machine is no image file, and yet can be copied: only preflight can tell.
  return rest(image, deps, copy.value === undefined ? [] : [copy.value]);
}

/** If not, it is noted that it is looked for now. */
function wasFoundLately(image: VMImage, deps: ImageDeps): boolean {
  const memory = memoryOf(image, deps);
  const { generation = 0 } = image.metadata;
  const nowMs = deps.clock.nowMs();
  const { looked } = memory;
  const isSame = looked?.generation === generation && image.status?.copies?.length === 1;
  if (isSame && nowMs - looked.atMs < foundMs) return true;
  memory.looked = { atMs: nowMs, generation };
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
  removing: Outcome | { readonly failure: Failure },
): Promise<Outcome> | Outcome {
  if (!("failure" in removing)) return removing;
  return trouble(image, deps, { copies: image.status?.copies ?? [], failure: removing.failure });
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

interface Delivery {
  readonly target: Target;
  readonly connection: Connection;
  readonly copies: readonly Copy[];
}

async function bringTo(image: VMImage, deps: ImageDeps, delivery: Delivery): Promise<Outcome> {
  const { target, connection, copies } = delivery;
  const memory = memoryOf(image, deps);
  const { task } = memory;
  if (task !== undefined && isSameTarget(task.target, target)) {
    const view = await connection.driver.look(task.handle);
    if (view.state === "running" || view.state === "unknown") {
      task.pollMs = Math.min(task.pollMs * 2, pollMsMost);
      return again("Downloading", task.pollMs);
    }
    delete memory.task;
    if (view.state === "failed") return trouble(image, deps, { copies, failure: view.failure });
  }
  const isThrough = connection.spec.imageDownload === "ViaBerth";
  const isOwnName = image.spec.fileName === undefined;
  if (isThrough && isOwnName && memory.sent === undefined) {
    return bringThrough(image, deps, delivery);
  }
  const there = await findFile(connection, image, target);
  if (!there.ok) return trouble(image, deps, { copies, failure: there.failure });
  const { sent } = memory;
  delete memory.sent;
  const begun = begunBytes(image, delivery);
  const expected = sent ?? begun ?? Number(image.spec.size);
  if (there.value !== undefined && isWhole(there.value, expected)) {
    await write(image, deps, { copies: [...copies, there.value] });
    return again("Present");
  }
  // Under a name that a person chose, only what our own upload left unfinished is written over.
  if (there.value !== undefined && (sent !== undefined || begun === undefined)) {
    return trouble(image, deps, { copies, failure: otherSize(image, there.value) });
  }
  if (sent !== undefined) return again("LookAgain", fencedMs);
  return isThrough ? bringThrough(image, deps, delivery) : fetch(image, deps, delivery);
}

/** How large the file is that an upload of ours was bringing to this place, whoever began it. */
function begunBytes({ status, ...image }: VMImage, delivery: Delivery): number | undefined {
  const { step, intent, progress } = status?.operation ?? {};
  const isThis = step === "Upload" && intent === intentOf(image, delivery);
  return isThis ? progress?.bytesTotal : undefined;
}

/** What is there already counts by its name and its size, where that is known. */
function isWhole({ size }: Copy, expected: number): boolean {
  return !Number.isFinite(expected) || Number(size) === expected;
}

/** Fetched here and sent on, in one stream; a file that is whole there already is only looked at. */
async function bringThrough(image: VMImage, deps: ImageDeps, delivery: Delivery): Promise<Outcome> {
  const { target, connection, copies } = delivery;
  const memory = memoryOf(image, deps);
  const { upload } = memory;
  if (upload !== undefined && isSameTarget(upload.target, target)) {
    return watchUpload(image, deps, { ...delivery, upload });
  }
  if (deps.web === undefined) return trouble(image, deps, { copies, failure: noWeb });
  if (!deps.fence.mayWrite()) return again("Fenced", fencedMs);
  const held = await holdFiles(image, deps);
  const source = await openSource(deps.web, held, connection);
  if (!source.ok) return trouble(held, deps, { copies, failure: source.failure });
  const nowMs = deps.clock.nowMs();
  const operation = operationOf(held, deps, delivery, "Upload");
  const progress = { bytesDone: 0, bytesTotal: source.value.sizeBytes };
  const coming = { copies: [...copies, comingCopy(target)], operation: { ...operation, progress } };
  await write(held, deps, coming);
  const sending = { image: held, connection, target, fence: deps.fence };
  memory.upload = startUpload(source.value, sending, nowMs);
  return again("Uploading", pollMsFirst);
}

async function watchUpload(
  image: VMImage,
  deps: ImageDeps,
  { upload, copies, ...delivery }: Delivery & { readonly upload: Upload },
): Promise<Outcome> {
  const { begun, totalBytes, doneBytes } = upload;
  const { operation } = image.status ?? {};
  const nowMs = deps.clock.nowMs();
  if (begun === undefined) {
    if (operation !== undefined && nowMs - upload.toldMs >= progressMs) {
      upload.toldMs = nowMs;
      const percent = Math.floor((doneBytes / Math.max(totalBytes, 1)) * 100);
      const progress = { percent, bytesDone: doneBytes, bytesTotal: totalBytes };
      const coming = [...copies, comingCopy(delivery.target)];
      await write(image, deps, { copies: coming, operation: { ...operation, progress } });
    }
    return again("Uploading", pollMsMost);
  }
  const memory = memoryOf(image, deps);
  delete memory.upload;
  if (begun.outcome === "unknown") {
    return trouble(image, deps, { copies, failure: begun.failure });
  }
  if (begun.outcome === "done" || begun.outcome === "task") memory.sent = totalBytes;
  return concludeBegun(image, deps, { ...delivery, copies, begun });
}

/** The intent is durable before the hypervisor hears of it; the name makes it repeatable. */
async function fetch(found: VMImage, deps: ImageDeps, delivery: Delivery): Promise<Outcome> {
  const { target, connection, copies } = delivery;
  const { url = "", checksum = "" } = found.spec.source.http ?? {};
  const { node, storage } = target;
  const fileName = fileNameOf(found);
  if (!deps.fence.mayWrite()) return again("Fenced", fencedMs);
  const rule = addressRule(connection.spec.privateImageNetworks);
  const refusal = deps.web && (await addressRefusal(deps.web, url, rule));
  if (refusal !== undefined) return trouble(found, deps, { copies, failure: refusal });
  const image = await holdFiles(found, deps);
  const operation = operationOf(image, deps, delivery, "Download");
  await write(image, deps, { copies: [...copies, comingCopy(target)], operation });
  const use = useOf(image);
  const fetching = { kind: "fetchImage", use, node, storage, url, fileName, checksum } as const;
  const begun = await connection.driver.begin(fetching, deps.fence);
  return concludeBegun(image, deps, { ...delivery, begun });
}

/** From now on there may be a file that Berth brought: the object does not go without it. */
async function holdFiles(image: VMImage, deps: ImageDeps): Promise<VMImage> {
  const objects = deps.client.of(vmImageKind);
  return deps.images.note(await addFinalizer<VMImage>(objects, image, finalizers.image));
}

function operationOf(
  image: VMImage,
  deps: ImageDeps,
  delivery: Delivery,
  step: "Download" | "Upload",
): NonNullable<ImageView["operation"]> {
  const nowMs = deps.clock.nowMs();
  return {
    id: deps.random.uuid(),
    step,
    intent: intentOf(image, delivery),
    attempt: 1,
    since: formatTime(nowMs),
    deadline: formatTime(nowMs + downloadMs),
  };
}

function intentOf(image: VMImage, { target, connection }: Delivery): string {
  const place = `${target.storage} on ${target.node} of ${connection.name}`;
  return `Brings ${fileNameOf(image)} to ${place}.`.slice(0, 1024);
}

async function concludeBegun(
  image: VMImage,
  deps: ImageDeps,
  { target, copies, begun }: Omit<Delivery, "connection"> & { readonly begun: Begun },
): Promise<Outcome> {
  switch (begun.outcome) {
    case "task":
      memoryOf(image, deps).task = { target, handle: begun.task, pollMs: pollMsFirst };
      return again("Downloading", pollMsFirst);
    case "refused":
      return trouble(image, deps, { copies, failure: begun.failure });
    case "done":
    case "progressed":
      return again("Present");
    case "blocked":
    case "changed":
    case "fenced":
    case "unknown":
      return again("LookAgain", fencedMs);
  }
}

const noWeb: Failure = {
  category: "ConfigurationError",
  message: "This Berth cannot fetch files itself.",
  remedy: "Set spec.imageDownload: Direct on the Hypervisor.",
};

function otherSize({ spec }: VMImage, { volume = "", size = "" }: Copy): Failure {
  return {
    category: "ConfigurationError",
    message: `The file ${volume} is there and has ${size} bytes, not the ${spec.size ?? "right"}.`,
    remedy: "Correct spec.size, name another spec.fileName, or remove that file by hand.",
  };
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

function memoryOf({ metadata }: VMImage, { memory }: ImageDeps): ImageMemory {
  const remembered = memory.get(objectKey(metadata)) ?? {};
  memory.set(objectKey(metadata), remembered);
  return remembered;
}

function isSameTarget(left: Target, right: Target): boolean {
  const isSamePlace = left.hypervisor === right.hypervisor && left.storage === right.storage;
  return isSamePlace && left.node === right.node;
}

async function rest(image: VMImage, deps: ImageDeps, copies: readonly Copy[]): Promise<Outcome> {
  await write(image, deps, { copies });
  return settled;
}

async function trouble(
  image: VMImage,
  deps: ImageDeps,
  { copies, failure }: { readonly copies: readonly Copy[]; readonly failure: Failure },
): Promise<Outcome> {
  const old = image.status?.failure;
  const policy = categoryPolicies[failure.category];
  const isCounted = policy.next === "retry" && old?.category === failure.category;
  const attempts = isCounted ? old.attempts + 1 : 1;
  // What an upload of ours left behind is told from a whole file only by this.
  const { operation } = deps.images.get(objectKey(image.metadata))?.status ?? {};
  const open = operation?.step === "Upload" ? { operation } : {};
  await write(image, deps, { copies, failure, attempts, ...open });
  const next = nextAttempt(policy, attempts, deps.random);
  return next.type === "stall" ? stalled(failure.category) : again(failure.category, next.afterMs);
}

async function write(found: VMImage, deps: ImageDeps, view: ImageView): Promise<void> {
  const image = deps.images.get(objectKey(found.metadata)) ?? found;
  const status = imageStatusOf(image, view, deps.clock.nowMs());
  deps.images.note(await writeStatus<VMImage>(deps.client.of(vmImageKind), image, status));
}
