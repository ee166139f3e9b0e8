import type { Claim, VMImage } from "../../api/index.ts";
import { answered, type Answer, type Failure, type KnownFile } from "../../hypervisor/index.ts";
import { again, type Outcome } from "../../runtime/index.ts";
import { isHeld, type FilePart } from "../claims/index.ts";
import type { Connection } from "../hypervisor/index.ts";
import { isOpen, type OperationRecord, type Resumed } from "../operations/index.ts";
import { copyAt, withCopy, type CopyWork } from "./copies.ts";
import { failCopy, heldLook } from "./failing.ts";
import { broughtByOther, claimAt, isOtherContent, isOwn, otherChecksum } from "./file-claims.ts";
import { holdFiles } from "./holding.ts";
import { failReplaced, isReplaced, noteFile, observed } from "./replaced.ts";
import { fileNameOf, placeKey, placeOf, useOf, type Copy, type Target } from "./plan.ts";
import { proofOf, proofOfPart, reasonOf } from "./proof.ts";
import { copyFrom } from "./recovery.ts";
import { findFile } from "./steps.ts";
import { copiesOf, writeImage, type ImageTurn } from "./turn.ts";
import { openSource, uploadOf } from "./upload.ts";
import { addressRefusal, addressRule } from "./web.ts";
import { heldBack, performWork, resumeWork } from "./work.ts";
import { guard } from "../../kernel/guard.ts";

/** A file that was asked for and is not there yet is looked for this often. */
const unconfirmedMs = 5_000;

function workAt(connection: Connection, target: Target): CopyWork {
  return { connection, node: target.node, place: placeOf(target) };
}

export interface Bringing {
  readonly target: Target;
  readonly connection: Connection;
  /** False: nobody needs it there any more, and what is on its way is only followed. */
  readonly isWanted?: boolean;
}

/** Brings the file to one place, or finds it there. Undefined: it is not there, nor on its way. */
export async function bringTo(
  turn: ImageTurn,
  { target, connection, isWanted = true }: Bringing,
): Promise<Outcome | undefined> {
  const work = workAt(connection, target);
  const paused = heldLook(turn, work);
  return paused ?? bringAt(turn, work, { target, isWanted });
}

async function bringAt(
  turn: ImageTurn,
  work: CopyWork,
  { target, isWanted }: { readonly target: Target; readonly isWanted: boolean },
): Promise<Outcome | undefined> {
  const { connection } = work;
  const resumed = await resumeWork(turn, work);
  if (resumed.is === "waiting") return resumed.outcome;
  const { before } = resumed;
  const step = isThrough(connection) ? "Upload" : "Download";
  const held = await heldBack(turn, work, { step, before });
  if (held !== undefined) return held;
  const there = await findFile(connection, turn.image, target);
  if (!there.ok) return failCopy(turn, work, { failure: there.failure });
  if (there.value !== undefined) return accept(turn, work, { there: there.value, before });
  // Its effect may still arrive: then the same is not asked for again.
  const isSettled = before === undefined || !isOpen(before.settlement);
  if (!guard("bring-copy-settled", isSettled)) return again("Unconfirmed", unconfirmedMs);
  if (!isWanted) return undefined;
  return isThrough(connection) ? upload(turn, work, { before }) : download(turn, work, before);
}

function isThrough({ spec }: Connection): boolean {
  return spec.imageDownload === "ViaBerth";
}

interface There {
  readonly there: Copy;
  readonly before: Resumed | undefined;
}

/** What is there counts by its name and its size, where that is known. */
async function accept(turn: ImageTurn, work: CopyWork, found: There): Promise<Outcome> {
  const { there } = found;
  const claim = await claimAt(turn, work);
  const isIts = claim === undefined || !isReplaced(claim, there);
  if (!guard("accept-file-as-bound", isIts)) return failReplaced(turn, work, { claim, there });
  const recalled = await recallBringing(turn, work, { claim, before: found.before });
  if (recalled !== undefined) return recalled;
  return acceptOwn(turn, work, { ...found, claim });
}

/**
 * An outcome while the task that brought a file may still be found. Another VMImage that is gone
 * may have begun it: then its record is in the Claim alone.
 */
async function recallBringing(
  turn: ImageTurn,
  work: CopyWork,
  { claim, before }: Pick<There, "before"> & { readonly claim: Claim | undefined },
): Promise<Outcome | undefined> {
  if (!isOwn(turn.image, claim) || claim.spec.state !== "Reserved") return undefined;
  if (before !== undefined) {
    const isSettled = guard("file-proof-settled", !isOpen(before.settlement));
    return isSettled ? undefined : again("Unconfirmed", unconfirmedMs);
  }
  const copy = copyFrom(claim);
  const { step } = copy.operation ?? {};
  if (step === undefined || hasFailed(copyAt(copiesOf(turn), work.place), step)) return undefined;
  await writeImage(turn, { copies: withCopy(copiesOf(turn), copy) });
  return again("Recall");
}

/** A step that failed was settled then, and its record went. */
function hasFailed(copy: Copy | undefined, step: string): boolean {
  const failures = [copy?.failure, ...(copy?.failedSteps ?? [])];
  return failures.some((failure) => failure?.step === step);
}

interface ThereOf extends There {
  readonly claim: Claim | undefined;
}

/** The file that its Claim means, or one without a Claim. */
async function acceptOwn(turn: ImageTurn, work: CopyWork, found: ThereOf): Promise<Outcome> {
  const { there, claim } = found;
  const expected = await expectedBytes(turn, work, claim);
  if (!expected.ok) return failCopy(turn, work, { failure: expected.failure });
  const bytes = expected.value;
  const isWhole = bytes === undefined || Number(there.size) === bytes;
  if (!guard("accept-copy-whole", isWhole)) return writeOver(turn, work, { ...found, bytes });
  const whose = await whoseFile(turn, work, found);
  if ("failure" in whose) return failCopy(turn, work, whose);
  if ("isOpen" in whose) return again("Unconfirmed", unconfirmedMs);
  turn.cache.seen.set(placeKey(work.place), turn.deps.clock.monotonicMs());
  await writeImage(turn, { copies: withCopy(copiesOf(turn), acceptedCopy(found, whose)) });
  return again("Present");
}

/** Only what our own upload left unfinished is written over. */
async function writeOver(
  turn: ImageTurn,
  work: CopyWork,
  { there, before, claim, bytes }: ThereOf & { readonly bytes: number | undefined },
): Promise<Outcome> {
  const sent = sentFile(turn.image, claim) === undefined ? undefined : claim;
  const copy = copyAt(copiesOf(turn), work.place);
  const proof = await proofOfPart(work, { claim: sent, there, copy });
  if (!proof.ok) return failCopy(turn, work, { failure: proof.failure });
  if (proof.value.is === "open") return again("Unconfirmed", unconfirmedMs);
  if (!guard("overwrite-own-upload", proof.value.is === "proven"))
    return failCopy(turn, work, { failure: otherSize(there, bytes) });
  const { size, createdAt } = there;
  await notePart(turn, { claim: sent, copy }, { size, createdAt });
  const held = await heldBack(turn, work, { step: "Upload" });
  return held ?? upload(turn, work, { before, part: { size, createdAt } });
}

/**
 * A part that is proven is known from now on by what the storage says of it: the task that left it
 * is forgotten some day, and the Claim names another one with the next attempt.
 */
async function notePart(
  turn: ImageTurn,
  { claim, copy }: { readonly claim: Claim | undefined; readonly copy: Copy | undefined },
  { size, createdAt }: KnownFile,
): Promise<void> {
  if (claim === undefined || size === undefined || createdAt === undefined) return;
  if (claim.spec.file?.createdAt !== createdAt) await turn.deps.files.note(claim, { createdAt });
  const isTold = copy?.createdAt === createdAt && copy.size === size;
  if (copy === undefined || isTold) return;
  await writeImage(turn, { copies: withCopy(copiesOf(turn), { ...copy, size, createdAt }) });
}

/** The time of a file that may still be written changes, and tells nothing yet. */
function acceptedCopy({ there, before }: There, whose: Pick<Copy, "brought" | "verified">): Copy {
  const { createdAt, ...copy } = { ...there, ...whose };
  const isSettled = before === undefined || !isOpen(before.settlement);
  return isSettled && createdAt !== undefined ? { ...copy, createdAt } : copy;
}

type Whose =
  | Pick<Copy, "brought" | "verified" | "claim">
  | { readonly failure: Failure }
  /** It cannot be told yet. */
  | { readonly isOpen: true };

/**
 * Whose a file is that is there and whole. Only its Claim tells that Berth brought it, and that its
 * checksum was verified on the way.
 */
async function whoseFile(turn: ImageTurn, work: CopyWork, found: ThereOf): Promise<Whose> {
  const { claim } = found;
  if (claim === undefined || !isHeld(claim.spec)) return { brought: false, verified: false };
  if (!isOwn(turn.image, claim)) return othersFile(turn.image, claim);
  return ownFile(turn, work, { ...found, claim });
}

function othersFile({ spec }: VMImage, claim: Claim): Whose {
  const { state, file } = claim.spec;
  if (state !== "Bound") return { failure: broughtByOther(claim) };
  const isSame = file?.checksum === spec.source.http?.checksum;
  return isSame ? { brought: false, verified: true } : { failure: otherChecksum(claim) };
}

async function ownFile(
  turn: ImageTurn,
  work: CopyWork,
  { claim, there, before }: There & { readonly claim: Claim },
): Promise<Whose> {
  const { metadata, spec } = claim;
  const own = { brought: true, verified: true, claim: metadata.name ?? "" };
  if (isOtherContent(turn.image, spec.file)) return { failure: otherChecksum(claim) };
  const { files } = turn.deps;
  if (spec.state === "Bound") {
    // While it may still be written its time changes: the next look records it.
    if (before === undefined || !isOpen(before.settlement)) await noteFile(turn, claim, there);
    return own;
  }
  const copy = copyAt(copiesOf(turn), work.place);
  const proof = await proofOf(work, { claim, there, before, copy });
  if (!proof.ok) return { failure: proof.failure };
  if (proof.value.is === "open") return { isOpen: true };
  if (!guard("bind-proven-file", proof.value.is === "proven")) {
    await files.release(claim, reasonOf(proof.value));
    return { brought: false, verified: false };
  }
  await files.bind(claim, observed(there));
  return own;
}

/**
 * How large the file has to be: as was sent, as is declared, or as its server says. An upload that
 * died leaves a part of the file under its whole name.
 */
async function expectedBytes(
  turn: ImageTurn,
  work: CopyWork,
  claim: Claim | undefined,
): Promise<Answer<number | undefined>> {
  const { image, deps } = turn;
  const sent = sentFile(image, claim);
  if (sent?.size !== undefined) return answered(Number(sent.size));
  const { size, fileName } = image.spec;
  const isAsked = fileName === undefined && isThrough(work.connection) && !isBound(claim);
  if (!isAsked || deps.web === undefined) {
    return answered(size === undefined ? undefined : Number(size));
  }
  const source = await openSource(deps.web, image, work.connection);
  if (!source.ok) return source;
  source.value.close();
  return answered(source.value.sizeBytes);
}

/** What an upload of ours was to send, which may have ended in the middle. */
function sentFile(image: VMImage, claim: Claim | undefined): FilePart | undefined {
  if (!isOwn(image, claim) || claim.spec.state !== "Reserved") return undefined;
  const { file } = claim.spec;
  return file?.operation?.step === "Upload" ? file : undefined;
}

function isBound(claim: Claim | undefined): boolean {
  return claim?.spec.state === "Bound";
}

/** The intent is durable before the hypervisor hears of it; the name makes it repeatable. */
async function download(
  turn: ImageTurn,
  work: CopyWork,
  before: Resumed | undefined,
): Promise<Outcome> {
  const { deps, image } = turn;
  const { url = "", checksum = "" } = image.spec.source.http ?? {};
  const { spec } = work.connection;
  const rule = addressRule(spec.privateImageNetworks);
  const refusal = deps.web && (await addressRefusal(deps.web, url, rule));
  if (refusal !== undefined) return failCopy(turn, work, { failure: refusal });
  await holdFiles(turn);
  const { node, place } = work;
  const operation = {
    kind: "fetchImage",
    use: useOf(image),
    node,
    storage: place.storage,
    url,
    fileName: fileNameOf(image),
    checksum,
  } as const;
  const intent = intentOf(image, work);
  return performWork(turn, work, { planned: { step: "Download", operation, intent }, before });
}

interface Sending {
  readonly before: Resumed | undefined;
  /** The part of the file that is there, and is ours. */
  readonly part?: KnownFile;
}

/** Fetched here and sent on in one stream. */
async function upload(
  turn: ImageTurn,
  work: CopyWork,
  { before, part }: Sending,
): Promise<Outcome> {
  const { deps, cache } = turn;
  if (deps.web === undefined) return failCopy(turn, work, { failure: noWeb });
  await holdFiles(turn);
  const source = await openSource(deps.web, turn.image, work.connection);
  if (!source.ok) return failCopy(turn, work, { failure: source.failure });
  const { value: file } = source;
  const sent = { doneBytes: 0 };
  const operation = uploadOf(turn.image, { work, file, sent, part });
  let isBegun = false;
  const opened = ({ id }: OperationRecord): void => {
    isBegun = true;
    cache.sent = new Map([...openUploads(turn), [id, sent]]);
  };
  const progress = { bytesDone: 0, bytesTotal: file.sizeBytes };
  const intent = intentOf(turn.image, work);
  const planned = { step: "Upload", operation, intent, inBackground: true };
  const outcome = await performWork(turn, work, { planned, before, progress, opened });
  if (!isBegun) file.close();
  return outcome;
}

/** The uploads that go on at other places. */
function openUploads({ image, cache }: ImageTurn): [string, { doneBytes: number }][] {
  const open = new Set(copiesOf({ image }).map(({ operation }) => operation?.id));
  return [...(cache.sent ?? [])].filter(([id]) => open.has(id));
}

function intentOf(image: VMImage, { place, node, connection }: CopyWork): string {
  return `Bring ${fileNameOf(image)} to ${place.storage} on ${node} of ${connection.name}.`;
}

const noWeb: Failure = {
  category: "ConfigurationError",
  message: "This Berth cannot fetch files itself.",
  remedy: "Set spec.imageDownload: Direct on the Hypervisor.",
};

function otherSize({ volume = "", size = "" }: Copy, bytes: number | undefined): Failure {
  return {
    category: "ConfigurationError",
    message:
      `The file ${volume} is there and has ${size} bytes, not the ${bytes ?? "right"}. ` +
      "Nothing proves that Berth brought it, so it is left alone.",
    remedy: "Correct spec.size, name another spec.fileName, or remove that file by hand.",
  };
}
