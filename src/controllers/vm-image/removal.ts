import { finalizers, vmImageKind } from "../../api/index.ts";
import type { Claim, VMImage } from "../../api/index.ts";
import { answered, knownFileOf, type Answer, type Failure } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import { objectKey } from "../../kernel/object.ts";
import { addFinalizer, again, type Outcome } from "../../runtime/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import { isDone, isOpen, type Resumed } from "../operations/index.ts";
import { withoutCopy, type CopyWork } from "./copies.ts";
import { failCopy } from "./failing.ts";
import { claimOf, isOfChecksum } from "./file-claims.ts";
import { fileNameOf, placeOfCopy, type Copy } from "./plan.ts";
import { proofOf, reasonOf } from "./proof.ts";
import { isReplaced, observed, replacedReason } from "./replaced.ts";
import { heldMs, mayBeSilent } from "./silence.ts";
import { forEach } from "./soonest.ts";
import { fileAt } from "./steps.ts";
import { copiesOf, writeImage, type ImageDeps, type ImageTurn } from "./turn.ts";
import { heldBack, performWork, resumeWork } from "./work.ts";
import { trouble, waitForHypervisor } from "./writing.ts";

/**
 * Leaves the copies that this image does not name any more, or that it named and now goes away: a
 * file is removed, if its Claim says that Berth brought it for this image. A file that another
 * VMImage of any namespace names stays, and passes to that one. What is left has an outcome.
 */
export async function removeOld(
  turn: ImageTurn,
  isOld: (copy: Copy) => boolean,
): Promise<Outcome[]> {
  return forEach(copiesOf(turn).filter(isOld), async (copy) => {
    const claim = await claimOf(turn, copy);
    const left = claim === undefined ? "gone" : await leaveCopy(turn, copy, claim);
    if (left !== "gone") return left;
    await writeImage(turn, { copies: withoutCopy(copiesOf(turn), placeOfCopy(copy)) });
    return again("Removed");
  });
}

async function leaveCopy(turn: ImageTurn, copy: Copy, claim: Claim): Promise<Outcome | "gone"> {
  const { deps } = turn;
  const { hypervisor, storage } = copy;
  if (deps.hypervisors.get(hypervisor) === undefined) {
    await deps.files.release(claim, `the Hypervisor ${hypervisor} is gone: nobody can remove it`);
    return "gone";
  }
  if (mayBeSilent(hypervisor, deps)) return again("HeldBack", heldMs);
  const reach = deps.connections.of(hypervisor);
  if (reach.is === "away") return waitForHypervisor(turn, { away: reach, hypervisor });
  const { connection } = reach;
  const node = copy.node ?? nodeWith(connection, storage);
  if (node === undefined) return trouble(turn, noStorage(claim), { hypervisor });
  return leaveAt(turn, { copy, claim, work: { connection, node, place: placeOfCopy(copy) } });
}

interface Leaving {
  readonly copy: Copy;
  readonly claim: Claim;
  readonly work: CopyWork;
}

/** What is on its way is waited for first: it would come after everybody has gone. */
async function leaveAt(turn: ImageTurn, leaving: Leaving): Promise<Outcome | "gone"> {
  const { claim, work } = leaving;
  const resumed = await resumeWork(turn, work);
  if (resumed.is === "waiting") return resumed.outcome;
  const { before } = resumed;
  const isSettled = before === undefined || !isOpen(before.settlement);
  if (!guard("remove-copy-settled", isSettled)) return again("Unconfirmed", lookMs);
  if (before?.record.step !== "Remove" || !(await isRemoved(leaving, before))) {
    return leaveSettled(turn, leaving, before);
  }
  await turn.deps.files.remove(claim);
  return "gone";
}

/** Nothing is under way: the file is proven, and passes to another image or is removed. */
async function leaveSettled(
  turn: ImageTurn,
  leaving: Leaving,
  before: Resumed | undefined,
): Promise<Outcome | "gone"> {
  const { work } = leaving;
  const proven = await proveFile(leaving, turn.deps.files, before);
  if (!proven.ok) return failCopy(turn, work, { failure: proven.failure });
  if (proven.value === "open") return again("Unconfirmed", lookMs);
  if (proven.value === undefined || (await passOn(turn, proven.value))) return "gone";
  // That it could not be brought is no reason to leave it.
  const held = await heldBack(turn, work, { step: "Remove", before });
  return held ?? beginRemoval(turn, { ...leaving, claim: proven.value }, before);
}

/**
 * The Claim of a file that Berth brought. Undefined: no file is there, or none that is proven;
 * `open`: that cannot be told yet.
 */
async function proveFile(
  { copy, claim, work }: Leaving,
  files: ImageDeps["files"],
  before: Resumed | undefined,
): Promise<Answer<Claim | "open" | undefined>> {
  const { state, file } = claim.spec;
  if (file === undefined) return answered(claim);
  const { connection, node } = work;
  const there = await fileAt(connection, { ...file, node });
  if (!there.ok) return there;
  if (there.value === undefined) {
    await files.remove(claim);
    return answered(undefined);
  }
  const seen = knownFileOf(there.value);
  if (state === "Bound") {
    if (guard("remove-file-as-bound", !isReplaced(claim, seen))) return answered(claim);
    await files.release(claim, replacedReason(claim, seen));
    return answered(undefined);
  }
  const proof = await proofOf(work, { claim, there: seen, before, copy });
  if (!proof.ok || proof.value.is === "open") return proof.ok ? answered("open") : proof;
  if (!guard("remove-proven-file", proof.value.is === "proven")) {
    await files.release(claim, reasonOf(proof.value));
    return answered(undefined);
  }
  const { volume } = there.value;
  return answered(await files.bind(claim, observed({ volume, ...seen })));
}

/** Another VMImage names the file: it owns the file from now on, and does not go without it. */
async function passOn({ image, deps }: ImageTurn, claim: Claim): Promise<boolean> {
  const heir = namedElsewhere(image, deps, claim.spec.file);
  if (guard("remove-copy-not-named", heir === undefined) || heir === undefined) return false;
  const objects = deps.client.of(vmImageKind);
  const isGoing = heir.metadata.deletionTimestamp !== undefined;
  const held = isGoing ? heir : await addFinalizer<VMImage>(objects, heir, finalizers.image);
  await deps.files.giveTo(claim, held);
  deps.wake(objectKey(held.metadata));
  return true;
}

/**
 * Whether a removal that has ended took effect. Where nobody says so, as of a file that was gone
 * before and of which there is no task, the storage shows it.
 */
async function isRemoved({ claim, work }: Leaving, { settlement }: Resumed): Promise<boolean> {
  if (isDone(settlement)) return true;
  const { file } = claim.spec;
  if (file === undefined) return false;
  const there = await fileAt(work.connection, { ...file, node: work.node });
  return there.ok && there.value === undefined;
}

function beginRemoval(
  turn: ImageTurn,
  { claim, work }: Leaving,
  before: Resumed | undefined,
): Promise<Outcome> {
  const { name: fileName = "", content } = claim.spec.file ?? {};
  const { node, place } = work;
  const operation = {
    kind: "removeImage",
    fileClaim: claim.spec,
    use: content === "ISO" ? "Disc" : "Disk",
    node,
    storage: place.storage,
    fileName,
  } as const;
  const intent = `Remove ${fileName} from ${place.storage} on ${node} of ${work.connection.name}.`;
  return performWork(turn, work, { planned: { step: "Remove", operation, intent }, before });
}

const lookMs = 2_000;

function namedElsewhere(
  image: VMImage,
  deps: ImageDeps,
  file: Claim["spec"]["file"],
): VMImage | undefined {
  return deps.allImages.list().find((other) => {
    const isGoing = other.metadata.deletionTimestamp !== undefined;
    const isUsed = deps.vms.byIndex("image", objectKey(other.metadata)).length > 0;
    const isOther = other.metadata.uid !== image.metadata.uid;
    const isNaming = fileNameOf(other) === file?.name && isOfChecksum(other, file);
    return isOther && isNaming && (!isGoing || isUsed);
  });
}

function noStorage({ metadata, spec }: Claim): Failure {
  const { name = "", storage = "" } = spec.file ?? {};
  return {
    category: "DependencyNotReady",
    message: `The storage ${storage} cannot be used now, so ${name} cannot be removed from it.`,
    remedy:
      "Bring the storage back. To leave the file where it is: " +
      `kubectl delete claim ${metadata.name ?? ""}. That removes no file.`,
  };
}

function nodeWith({ inventory }: Connection, storage: string): string | undefined {
  return inventory.storages.find(({ name, isUsable }) => name === storage && isUsable)?.node;
}
