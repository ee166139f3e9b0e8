import type { VMImage } from "../../api/index.ts";
import type { RemoveImage } from "../../hypervisor/index.ts";
import { formatTime } from "../../kernel/clock.ts";
import { objectKey } from "../../kernel/object.ts";
import { again, type Outcome } from "../../runtime/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import type { ImageDeps } from "./deps.ts";
import { fileNameOf, useOf, type Copy } from "./plan.ts";
import { heldMs, mayBeSilent } from "./silence.ts";
import { write, type Trouble, type Waiting } from "./writing.ts";

const removeMs = 60_000;
const lookMs = 1_000;
const blockedMs = 5_000;

/** Only a name that carries its checksum says that Berth brought the file. */
const ownName = /^berth-(sha256|sha512)-([0-9a-f]{64})\./;

/** What became of an attempt to remove a copy: it is no longer ours to care for, or this. */
export type Removed =
  | "gone"
  | Outcome
  | Omit<Waiting, "copies">
  | (Omit<Trouble, "copies"> & { readonly hypervisor: string });

/**
 * Removes one file that this image does not name any more, or that it named and now goes away. A
 * file that another VMImage of any namespace names stays, and one that Berth did not bring anyway.
 * Undefined: there is nothing to remove.
 */
export async function removeOld(
  image: VMImage,
  deps: ImageDeps,
  isOld: (copy: Copy) => boolean,
): Promise<Removed | undefined> {
  const copies = image.status?.copies ?? [];
  const copy = copies.find(isOld);
  if (copy === undefined) return undefined;
  const removed = copy.brought ? await removeCopy(image, deps, copy) : "gone";
  if (removed !== "gone") return removed;
  await write(image, deps, { copies: copies.filter((one) => one !== copy) });
  return again("Removed");
}

async function removeCopy(image: VMImage, deps: ImageDeps, copy: Copy): Promise<Removed> {
  if (deps.hypervisors.get(copy.hypervisor) === undefined) return "gone";
  if (mayBeSilent(copy.hypervisor, deps)) return again("HeldBack", heldMs);
  const reach = deps.connections.of(copy.hypervisor);
  if (reach.is === "away") return { away: reach, hypervisor: copy.hypervisor };
  const { connection } = reach;
  const node = copy.node ?? nodeWith(connection, copy.storage);
  if (node === undefined) return "gone";
  const fileName = copy.fileName ?? fileNameOf(image);
  const checksum = checksumOf(fileName);
  if (checksum === undefined || isNamedElsewhere(image, deps, fileName)) return "gone";
  const place = { use: useOf(image), node, storage: copy.storage, fileName };
  return begin(image, deps, { connection, operation: { kind: "removeImage", ...place, checksum } });
}

function checksumOf(fileName: string): string | undefined {
  const [, algorithm, digest] = ownName.exec(fileName) ?? [];
  return algorithm === undefined ? undefined : `${algorithm}:${digest ?? ""}`;
}

async function begin(
  image: VMImage,
  deps: ImageDeps,
  { connection, operation }: { connection: Connection; operation: RemoveImage },
): Promise<Removed> {
  if (!deps.fence.mayWrite()) return again("Fenced", lookMs);
  const { fileName, storage, node } = operation;
  const nowMs = deps.clock.nowMs();
  const intent = `Removes ${fileName} from ${storage} on ${node} of ${connection.name}.`;
  const removing = {
    id: deps.random.uuid(),
    step: "Remove",
    intent: intent.slice(0, 1024),
    attempt: 1,
    since: formatTime(nowMs),
    deadline: formatTime(nowMs + removeMs),
  };
  await write(image, deps, { copies: image.status?.copies ?? [], operation: removing });
  deps.reports.opened(removing);
  const begun = await connection.driver.begin(operation, deps.fence);
  const task = begun.outcome === "task" ? { task: begun.task } : {};
  deps.reports.operated(image, { ...removing, ...task }, begun.outcome);
  switch (begun.outcome) {
    case "refused":
      return { failure: begun.failure, hypervisor: connection.name, operation: removing };
    case "blocked":
      return again("Blocked", blockedMs);
    case "done":
      return "gone";
    case "task":
    case "progressed":
    case "changed":
    case "fenced":
    case "unknown":
      // Whether it is gone is seen by looking.
      return again("Removing", lookMs);
  }
}

function isNamedElsewhere(image: VMImage, deps: ImageDeps, fileName: string): boolean {
  return deps.allImages.list().some((other) => {
    const isGoing = other.metadata.deletionTimestamp !== undefined;
    const isUsed = deps.vms.byIndex("image", objectKey(other.metadata)).length > 0;
    const isOther = other.metadata.uid !== image.metadata.uid;
    const isNaming = other.spec.source.http !== undefined && fileNameOf(other) === fileName;
    return isOther && isNaming && (!isGoing || isUsed);
  });
}

function nodeWith({ inventory }: Connection, storage: string): string | undefined {
  return inventory.storages.find(({ name, isUsable }) => name === storage && isUsable)?.node;
}
