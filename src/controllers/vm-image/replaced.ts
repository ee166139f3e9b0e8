import type { Claim } from "../../api/index.ts";
import {
  fileDifference,
  isSameFile,
  type Failure,
  type KnownFile,
} from "../../hypervisor/index.ts";
import type { Outcome } from "../../runtime/index.ts";
import type { FilePart } from "../claims/index.ts";
import { defined } from "../failures/index.ts";
import type { CopyWork } from "./copies.ts";
import { failCopy } from "./failing.ts";
import { isOwn } from "./file-claims.ts";
import type { Copy } from "./plan.ts";
import type { ImageTurn } from "./turn.ts";

/**
 * Whether a file is another one than that which its Claim was bound for: somebody replaced it, and
 * it is that person's. A Claim that was released for this still says which file it was bound for.
 */
export function isReplaced({ spec }: Claim, there: KnownFile): boolean {
  const { boundAt, state, file = {} } = spec;
  const wasBound = boundAt !== undefined && state !== "Reserved";
  return wasBound && !isSameFile(file, there);
}

/** What the ledger keeps of a file that was observed. */
export function observed({
  volume,
  size,
  createdAt,
}: KnownFile & { readonly volume?: string | undefined }): Partial<FilePart> {
  return defined<Partial<FilePart>>({ volume, size, createdAt });
}

/** A Claim that an earlier release bound does not say yet what the storage says of its file. */
export async function noteFile(turn: ImageTurn, claim: Claim, there: Copy): Promise<void> {
  const { size, createdAt } = claim.spec.file ?? {};
  const isMore = size === undefined || (createdAt === undefined && there.createdAt !== undefined);
  if (isOwn(turn.image, claim) && isMore) await turn.deps.files.note(claim, observed(there));
}

/** Why the Claim of a file that was replaced is released. */
export function replacedReason({ spec }: Claim, there: KnownFile): string {
  const difference = fileDifference(spec.file ?? {}, there);
  return `the file was replaced: ${difference}. It is somebody else's, and is left alone`;
}

interface Replaced {
  readonly claim: Claim | undefined;
  readonly there: Copy;
}

/**
 * The file is given up, and its copy counts for nothing: it is not used, not verified and not
 * removed. The Claim is released first; while the status does not say so, the Claim does.
 */
export async function failReplaced(
  turn: ImageTurn,
  work: CopyWork,
  { claim, there }: Replaced,
): Promise<Outcome> {
  if (isOwn(turn.image, claim)) {
    await turn.deps.files.release(claim, replacedReason(claim, there));
  }
  const copy: Copy = { ...there, state: "Failed", brought: false, verified: false };
  return failCopy(turn, work, { failure: replacedFailure(work, claim, there), copy });
}

/** A copy that waits for a person to decide about the file that is there. */
export function isReplacedCopy({ state, failure }: Copy): boolean {
  return state === "Failed" && failure?.category === "IdentityConflict";
}

function replacedFailure(
  { node, place }: CopyWork,
  claim: Claim | undefined,
  there: Copy,
): Failure {
  const difference = fileDifference(claim?.spec.file ?? {}, there);
  const where = `${place.storage} of ${place.node ?? node}`;
  return {
    category: "IdentityConflict",
    message:
      `The file ${there.fileName ?? ""} on ${where} was replaced: ${difference}. ` +
      "Berth neither uses it nor removes it.",
    remedy:
      "Remove that file by hand, and Berth brings it again; or name another spec.fileName. " +
      `To use it as it is, unverified: kubectl delete claim ${claim?.metadata.name ?? ""}. ` +
      "That removes no file.",
  };
}
