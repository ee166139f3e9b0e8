import { vmImageKind } from "../../api/index.ts";
import type { Claim, VMImage } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import { objectKey } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";
import { isHeld, type FilePart } from "../claims/index.ts";
import { defined } from "../failures/index.ts";
import type { OperationRecord, Resumed } from "../operations/index.ts";
import { holdFiles } from "./holding.ts";
import type { Copy } from "./plan.ts";
import { fileOf } from "./steps.ts";
import type { ImageTurn } from "./turn.ts";
import type { CopyWork } from "./copies.ts";

/** Whether a Claim is held for this very image. */
export function isOwn({ metadata }: VMImage, claim: Claim | undefined): claim is Claim {
  return claim !== undefined && isHeld(claim.spec) && claim.spec.owner.uid === metadata.uid;
}

/** Whether the content that was verified when a file was brought is what an image asks for. */
export function isOfChecksum({ spec }: VMImage, file: Claim["spec"]["file"]): boolean {
  return spec.source.http !== undefined && file?.checksum === spec.source.http.checksum;
}

/** Whether it is known to be another content. 0.1 did not write the checksum down. */
export function isOtherContent(image: VMImage, file: Claim["spec"]["file"]): boolean {
  return file?.checksum !== undefined && !isOfChecksum(image, file);
}

/**
 * The Claim of the image's file at a place, as the server has it now. One whose VMImage is gone
 * passes to this one, which names the same file.
 */
export async function claimAt(turn: ImageTurn, work: CopyWork): Promise<Claim | undefined> {
  const { files } = turn.deps;
  const { node, storage } = work.place;
  const file = { ...fileOf(turn.image), node, storage };
  const claim = await files.at(work.connection.systemId, file);
  if (claim === undefined || !isHeld(claim.spec) || isOwn(turn.image, claim)) return claim;
  return inherit(turn, claim);
}

async function inherit(turn: ImageTurn, claim: Claim): Promise<Claim> {
  if (!isOfChecksum(turn.image, claim.spec.file)) return claim;
  if (!guard("inherit-ownerless-file", !(await hasOwner(turn, claim)))) return claim;
  await holdFiles(turn);
  return turn.deps.files.giveTo(claim, turn.image);
}

/** Whether the very VMImage that a Claim names is there, as the server has it now. */
async function hasOwner({ deps }: ImageTurn, { spec }: Claim): Promise<boolean> {
  const { namespace, name, uid } = spec.owner;
  try {
    const owner = await deps.client.of(vmImageKind).get({ namespace, name });
    return owner.metadata.uid === uid;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error;
    return false;
  }
}

/** The operation that is to bring a file, and how large that is where it is known. */
interface Coming {
  readonly record: OperationRecord;
  readonly size?: number | undefined;
}

/**
 * Writes the Claim of a file before it is brought: only what is in the ledger is ever removed, and
 * a status may get lost. Resolves with a failure where the file is another VMImage's.
 */
export async function reserveFile(
  turn: ImageTurn,
  work: CopyWork,
  { record, size }: Coming,
): Promise<Failure | undefined> {
  const { deps, image } = turn;
  const { connection, place } = work;
  const file = comingFile(image, work, { record, size });
  const { name, systemId } = connection;
  const there = await claimAt(turn, work);
  // The file that it was bound for was looked for, and is not there.
  if (isOwn(image, there) && there.spec.state === "Bound") await deps.files.remove(there);
  const hypervisor = { name, systemId };
  const reserved = await deps.files.reserve({ image, hypervisor, node: place.node, file });
  if (reserved.is === "taken") return broughtByOther(reserved.by);
  if (reserved.claim.spec.file?.operation?.id !== record.id)
    await deps.files.note(reserved.claim, file);
  return undefined;
}

/** What the ledger keeps of a file that is about to be brought. */
function comingFile(image: VMImage, work: CopyWork, coming: Coming): FilePart {
  const { id, key, step, since } = coming.record;
  const { node, place } = work;
  const { size } = coming;
  return defined<FilePart>({
    ...fileOf(image),
    storage: place.storage,
    checksum: image.spec.source.http?.checksum,
    size: size === undefined ? undefined : String(size),
    operation: defined<NonNullable<FilePart["operation"]>>({ id, key, step, node, since }),
  });
}

/** Another VMImage brings the file, and this one uses it when it is there. */
export function broughtByOther({ spec }: Claim): Failure {
  const { owner, file } = spec;
  return {
    category: "DependencyNotReady",
    message:
      `The VMImage ${objectKey(owner)} brings the file ${file?.name ?? ""} to ` +
      `${file?.storage ?? ""}. It is brought once, and used by both.`,
    remedy: `See why it is not there yet: berth why -n ${owner.namespace} vmimage/${owner.name}`,
  };
}

/** Another VMImage brought a file under this name that has another checksum. */
export function otherChecksum({ spec }: Claim): Failure {
  const { owner, file } = spec;
  return {
    category: "ConfigurationError",
    message:
      `The file ${file?.name ?? ""} on ${file?.storage ?? ""} is that of the VMImage ` +
      `${objectKey(owner)}, which has another checksum: ${file?.checksum ?? ""}.`,
    remedy: "Name another spec.fileName, or leave it out.",
  };
}

/** Keeps the task of an upload that did not end well: the record of the copy goes. */
export async function noteUploadTask(
  turn: ImageTurn,
  work: CopyWork,
  { record, task }: Pick<Resumed, "record" | "task">,
): Promise<void> {
  if (record.step !== "Upload" || task === undefined) return;
  const claim = await claimAt(turn, work);
  const { operation } = claim?.spec.file ?? {};
  const isIts = operation?.id === record.id && operation.task === undefined;
  if (!isOwn(turn.image, claim) || claim.spec.state !== "Reserved" || !isIts) return;
  await turn.deps.files.note(claim, { operation: { ...operation, task } });
}

/** The Claim of a copy, if it is this image's. */
export async function claimOf(turn: ImageTurn, { claim: name }: Copy): Promise<Claim | undefined> {
  const claim = name === undefined ? undefined : await turn.deps.files.named(name);
  return guard("remove-own-file", isOwn(turn.image, claim)) ? claim : undefined;
}

/** A download that failed leaves nothing under its name: another VMImage may bring the file now. */
export async function forgetDownload(
  turn: ImageTurn,
  work: CopyWork,
  { id, step }: OperationRecord,
): Promise<void> {
  if (step !== "Download") return;
  const claim = await claimAt(turn, work);
  const isIts = claim?.spec.state === "Reserved" && claim.spec.file?.operation?.id === id;
  if (isOwn(turn.image, claim) && guard("forget-own-download", isIts)) {
    await turn.deps.files.remove(claim);
  }
}
