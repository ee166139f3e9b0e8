import { finalizers, vmImageKind } from "../../api/index.ts";
import type { VirtualMachine, VMImage } from "../../api/index.ts";
import type { Client, Informer } from "../../client/index.ts";
import { categoryPolicies } from "../../hypervisor/index.ts";
import type { Failure, Fence, TaskHandle } from "../../hypervisor/index.ts";
import { formatTime, type Clock } from "../../kernel/clock.ts";
import { objectKey } from "../../kernel/object.ts";
import type { Random } from "../../kernel/random.ts";
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
import type { WrittenObjects } from "../claims/index.ts";
import type { Connection, Connections } from "../hypervisor/index.ts";
import {
  fileNameOf,
  isAt,
  planTargets,
  useOf,
  type Copy,
  type ImageHost,
  type Target,
} from "./plan.ts";
import { imageStatusOf, type ImageView } from "./status.ts";
import { comingCopy, findFile, findVolume } from "./steps.ts";

export interface ImageDeps {
  readonly client: Client;
  readonly clock: Clock;
  readonly random: Random;
  readonly connections: Connections;
  readonly fence: Fence;
  readonly images: WrittenObjects<VMImage>;
  /** With the index `image`. */
  readonly vms: Informer<VirtualMachine>;
  readonly hypervisors: Informer<{ metadata: { name?: string } }>;
  readonly memory: Map<string, ImageMemory>;
}

/** What a process remembers of an image. All of it can be lost: the file's name tells. */
export interface ImageMemory {
  /** When a volume was last looked for, and under which generation it was found. */
  looked?: { readonly atMs: number; readonly generation: number };
  task?: { readonly target: Target; readonly handle: TaskHandle; pollMs: number };
}

const pollMsFirst = 200;
const pollMsMost = 2_000;
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
  if (image === undefined) return settled;
  return image.spec.source.http === undefined ? find(image, deps) : bring(image, deps);
}

/** A volume or a template is where it is; only whether it can be seen is found out. */
async function find(image: VMImage, deps: ImageDeps): Promise<Outcome> {
  const { volume, template } = image.spec.source;
  const reach = deps.connections.of((volume ?? template)?.hypervisorRef.name ?? "");
  if (reach.is === "away") return trouble(image, deps, { copies: [], failure: reach.failure });
  if (volume === undefined) return rest(image, deps, []);
  if (wasFoundLately(image, deps)) return settled;
  const found = await findVolume(reach.connection, volume.id);
  if (!found.ok) return trouble(image, deps, { copies: [], failure: found.failure });
  // A disk of a machine is no image file, and yet can be copied: only preflight can tell.
  return rest(image, deps, found.value);
}

/** If not, it is noted that it is looked for now. */
function wasFoundLately(image: VMImage, deps: ImageDeps): boolean {
  const memory = memoryOf(image, deps);
  const { generation = 0 } = image.metadata;
  const nowMs = deps.clock.nowMs();
  const { looked } = memory;
  const isSame = looked?.generation === generation && (image.status?.copies ?? []).length > 0;
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
  const left = await removeFinalizer<VMImage>(objects, image, finalizers.inUse);
  return deletionTimestamp === undefined ? left : undefined;
}

async function bring(image: VMImage, deps: ImageDeps): Promise<Outcome> {
  const key = objectKey(image.metadata);
  const vms = deps.vms.byIndex("image", key);
  const hosts = hostsOf(deps);
  const copies: Copy[] = (image.status?.copies ?? []).filter(({ state }) => state === "Present");
  const targets = planTargets(image, vms, hosts.map(hostOf));
  const target = targets.find((one) => !copies.some((copy) => isAt(copy, one)));
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
  const there = await findFile(connection, image, target);
  if (!there.ok) return trouble(image, deps, { copies, failure: there.failure });
  if (there.value !== undefined) {
    await write(image, deps, { copies: [...copies, there.value] });
    return again("Present");
  }
  return fetch(image, deps, delivery);
}

/** The intent is durable before the hypervisor hears of it; the name makes it repeatable. */
async function fetch(image: VMImage, deps: ImageDeps, delivery: Delivery): Promise<Outcome> {
  const { target, connection, copies } = delivery;
  const { url = "", checksum = "" } = image.spec.source.http ?? {};
  const { node, storage } = target;
  const fileName = fileNameOf(image);
  if (!deps.fence.mayWrite()) return again("Fenced", fencedMs);
  const nowMs = deps.clock.nowMs();
  const operation = {
    id: deps.random.uuid(),
    step: "Download",
    intent: `Brings ${fileName} to ${storage} on ${node} of ${connection.name}.`.slice(0, 1024),
    attempt: 1,
    since: formatTime(nowMs),
    deadline: formatTime(nowMs + downloadMs),
  };
  await write(image, deps, { copies: [...copies, comingCopy(target)], operation });
  const use = useOf(image);
  const fetching = { kind: "fetchImage", use, node, storage, url, fileName, checksum } as const;
  const begun = await connection.driver.begin(fetching, deps.fence);
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
  await write(image, deps, { copies, failure, attempts });
  const next = nextAttempt(policy, attempts, deps.random);
  return next.type === "stall" ? stalled(failure.category) : again(failure.category, next.afterMs);
}

async function write(found: VMImage, deps: ImageDeps, view: ImageView): Promise<void> {
  const image = deps.images.get(objectKey(found.metadata)) ?? found;
  const status = imageStatusOf(image, view, deps.clock.nowMs());
  deps.images.note(await writeStatus<VMImage>(deps.client.of(vmImageKind), image, status));
}
