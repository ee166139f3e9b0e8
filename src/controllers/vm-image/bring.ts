import { finalizers, vmImageKind } from "../../api/index.ts";
import type { VMImage } from "../../api/index.ts";
import type { Begun, Failure } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { addFinalizer, again, type Outcome } from "../../runtime/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import type { ReportedOperation } from "../reports/index.ts";
import type { ImageDeps } from "./deps.ts";
import { fileNameOf, useOf, type Copy, type Target } from "./plan.ts";
import type { ImageView } from "./status.ts";
import { comingCopy, findFile } from "./steps.ts";
import { openSource, startUpload, type Upload } from "./upload.ts";
import { addressRefusal, addressRule } from "./web.ts";
import { memoryOf, trouble, write, type Trouble } from "./writing.ts";

const pollMsFirst = 200;
const pollMsMost = 2_000;
const progressMs = 10_000;
const fencedMs = 1_000;
const downloadMs = 60_000;

/** One place that lacks the file. */
export interface Delivery {
  readonly target: Target;
  readonly connection: Connection;
  readonly copies: readonly Copy[];
}

/** Brings the file to one place, or finds it there. */
export async function bringTo(
  image: VMImage,
  deps: ImageDeps,
  delivery: Delivery,
): Promise<Outcome> {
  const { connection } = delivery;
  const working = await lookAtTask(image, deps, delivery);
  if (working !== undefined) return working;
  const memory = memoryOf(image, deps);
  // A file of our own name may be only a part of it: its server knows how large it is.
  if (isThrough(connection) && image.spec.fileName === undefined && memory.sent === undefined) {
    return bringThrough(image, deps, delivery);
  }
  const there = await findFile(connection, image, delivery.target);
  if (!there.ok) return trouble(image, deps, troubleAt(delivery, there.failure));
  const { sent } = memory;
  delete memory.sent;
  if (there.value !== undefined)
    return accept(image, deps, { ...delivery, there: there.value, sent });
  if (sent !== undefined) return again("LookAgain", fencedMs);
  return isThrough(connection) ? bringThrough(image, deps, delivery) : fetch(image, deps, delivery);
}

function isThrough({ spec }: Connection): boolean {
  return spec.imageDownload === "ViaBerth";
}

/** Work that this process began; undefined where there is none, or it has ended well. */
async function lookAtTask(
  image: VMImage,
  deps: ImageDeps,
  { target, connection, copies }: Delivery,
): Promise<Outcome | undefined> {
  const memory = memoryOf(image, deps);
  const { task } = memory;
  if (task === undefined || !isSameTarget(task.target, target)) return undefined;
  const view = await connection.driver.look(task.handle);
  if (view.state === "running" || view.state === "unknown") {
    task.pollMs = Math.min(task.pollMs * 2, pollMsMost);
    return again("Downloading", task.pollMs);
  }
  delete memory.task;
  const operation = { ...task.operation, task: task.handle };
  deps.reports.operated(image, operation, view.state);
  // Work that died may have left half of what was sent: that is begun anew.
  if (view.state === "failed" || view.state === "lost") delete memory.sent;
  if (view.state !== "failed") return undefined;
  return trouble(image, deps, { ...troubleAt({ target, copies }, view.failure), operation });
}

/** What is there already counts by its name and its size, where that is known. */
async function accept(
  image: VMImage,
  deps: ImageDeps,
  { there, sent, ...delivery }: Delivery & { there: Copy; sent: number | undefined },
): Promise<Outcome> {
  const { copies, connection } = delivery;
  const begun = begunBytes(image, delivery);
  const expected = sent ?? begun ?? Number(image.spec.size);
  if (!Number.isFinite(expected) || Number(there.size) === expected) {
    await write(image, deps, { copies: [...copies, there] });
    return again("Present");
  }
  // Under a name that a person chose, only what our own upload left unfinished is written over.
  const isUnfinished = begun !== undefined && sent === undefined && isThrough(connection);
  if (isUnfinished) return bringThrough(image, deps, delivery);
  return trouble(image, deps, troubleAt({ ...delivery, copies }, otherSize(image, there)));
}

/** How large the file is that an upload of ours was bringing to this place, whoever began it. */
function begunBytes({ status, ...image }: VMImage, delivery: Delivery): number | undefined {
  const { step, intent, progress } = status?.operation ?? {};
  const isThis = step === "Upload" && intent === intentOf(image, delivery);
  return isThis ? progress?.bytesTotal : undefined;
}

/** Fetched here and sent on in one stream; a file that is whole there already is only looked at. */
async function bringThrough(image: VMImage, deps: ImageDeps, delivery: Delivery): Promise<Outcome> {
  const { target, connection, copies } = delivery;
  const memory = memoryOf(image, deps);
  const { upload } = memory;
  if (upload !== undefined && isSameTarget(upload.target, target)) {
    return watchUpload(image, deps, { ...delivery, upload });
  }
  if (deps.web === undefined) return trouble(image, deps, troubleAt(delivery, noWeb));
  if (!deps.fence.mayWrite()) return again("Fenced", fencedMs);
  const held = await holdFiles(image, deps);
  const source = await openSource(deps.web, held, connection);
  if (!source.ok) return trouble(held, deps, troubleAt(delivery, source.failure));
  const nowMs = deps.clock.nowMs();
  const operation = { ...operationOf(held, deps, delivery), step: "Upload" };
  const progress = { bytesDone: 0, bytesTotal: source.value.sizeBytes };
  const coming = { copies: [...copies, comingCopy(target)], operation: { ...operation, progress } };
  await write(held, deps, coming);
  deps.reports.opened(operation);
  const sending = { image: held, connection, target, fence: deps.fence };
  memory.upload = startUpload(source.value, sending, nowMs);
  return again("Uploading", pollMsFirst);
}

async function watchUpload(
  image: VMImage,
  deps: ImageDeps,
  { upload, copies, ...delivery }: Delivery & { readonly upload: Upload },
): Promise<Outcome> {
  const { begun, totalBytes } = upload;
  if (begun === undefined) {
    const nowMs = deps.clock.nowMs();
    const coming = [...copies, comingCopy(delivery.target)];
    if (nowMs - upload.toldMs >= progressMs) await tell(image, deps, { upload, coming });
    return again("Uploading", pollMsMost);
  }
  const memory = memoryOf(image, deps);
  delete memory.upload;
  const { operation: told } = image.status ?? {};
  if (begun.outcome === "unknown") {
    const at = troubleAt({ ...delivery, copies }, begun.failure);
    return trouble(image, deps, { ...at, operation: told });
  }
  if (begun.outcome === "done" || begun.outcome === "task") memory.sent = totalBytes;
  const operation = told ?? operationOf(image, deps, { ...delivery, copies });
  return concludeBegun(image, deps, { ...delivery, copies, begun, operation });
}

async function tell(
  image: VMImage,
  deps: ImageDeps,
  { upload, coming }: { readonly upload: Upload; readonly coming: readonly Copy[] },
): Promise<void> {
  const { operation } = image.status ?? {};
  if (operation === undefined) return;
  upload.toldMs = deps.clock.nowMs();
  const { doneBytes: bytesDone, totalBytes: bytesTotal } = upload;
  const percent = Math.floor((bytesDone / Math.max(bytesTotal, 1)) * 100);
  const progress = { percent, bytesDone, bytesTotal };
  await write(image, deps, { copies: coming, operation: { ...operation, progress } });
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
  if (refusal !== undefined) return trouble(found, deps, troubleAt(delivery, refusal));
  const image = await holdFiles(found, deps);
  const operation = operationOf(image, deps, delivery);
  await write(image, deps, { copies: [...copies, comingCopy(target)], operation });
  const use = useOf(image);
  const fetching = { kind: "fetchImage", use, node, storage, url, fileName, checksum } as const;
  deps.reports.opened(operation);
  const begun = await connection.driver.begin(fetching, deps.fence);
  return concludeBegun(image, deps, { ...delivery, begun, operation });
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
): NonNullable<ImageView["operation"]> {
  const nowMs = deps.clock.nowMs();
  return {
    id: deps.random.uuid(),
    step: "Download",
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

interface Attempt extends Omit<Delivery, "connection"> {
  readonly begun: Begun;
  readonly operation: ReportedOperation;
}

async function concludeBegun(
  image: VMImage,
  deps: ImageDeps,
  { target, copies, begun, operation }: Attempt,
): Promise<Outcome> {
  const task = begun.outcome === "task" ? { task: begun.task } : {};
  deps.reports.operated(image, { ...operation, ...task }, begun.outcome);
  switch (begun.outcome) {
    case "task":
      memoryOf(image, deps).task = { target, handle: begun.task, operation, pollMs: pollMsFirst };
      return again("Downloading", pollMsFirst);
    case "refused":
      return trouble(image, deps, {
        ...troubleAt({ target, copies }, begun.failure),
        operation,
      });
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

function troubleAt(
  { target, copies }: Pick<Delivery, "target" | "copies">,
  failure: Failure,
): Trouble {
  return { copies, failure, hypervisor: target.hypervisor };
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

function isSameTarget(left: Target, right: Target): boolean {
  const isSamePlace = left.hypervisor === right.hypervisor && left.storage === right.storage;
  return isSamePlace && left.node === right.node;
}
