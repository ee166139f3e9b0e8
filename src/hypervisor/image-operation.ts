import type { ClaimSpec } from "../api/index.ts";
import type { KnownFile } from "./known-file.ts";
import type { SeenFile } from "./seen-file.ts";

/**
 * Lets the hypervisor bring an image file: a task, by which it is known to be Berth's. Present
 * under that name already: done, and whose it is nobody knows.
 */
export interface FetchImage {
  readonly kind: "fetchImage";
  /** What it is for: to fill disks (where nothing is said), or to lie in a drive. */
  readonly use?: "Disk" | "Disc";
  readonly node: string;
  readonly storage: string;
  readonly url: string;
  readonly fileName: string;
  /** `sha256:` or `sha512:` and the digest in hexadecimal. */
  readonly checksum: string;
}

/**
 * Uploads an image file as it comes: a task, by which it is known to be Berth's. Whole there
 * already: done, and nothing of it is read. Another file of the name: `changed`.
 */
export interface PutImage {
  readonly kind: "putImage";
  readonly use?: "Disk" | "Disc";
  readonly node: string;
  readonly storage: string;
  readonly fileName: string;
  /** `sha256:` or `sha512:` and the digest in hexadecimal. The hypervisor checks it. */
  readonly checksum: string;
  readonly sizeBytes: number;
  readonly chunks: AsyncIterable<Uint8Array>;
  /** The part of it that is there and is proven ours: only that is written over. */
  readonly knownFile?: KnownFile;
}

/** What a driver has to know of the Claim of a file. */
export type ClaimedFile = Pick<ClaimSpec, "externalId" | "target" | "state" | "node" | "file">;

/**
 * Removes an image file that Berth brought, as its Claim proves: it is Bound, and about this file.
 * A name proves nothing: a file of another size or time than the Claim records is refused. While
 * any work goes on that may read it: blocked. Gone already: done.
 */
export interface RemoveImage {
  readonly kind: "removeImage";
  readonly fileClaim: ClaimedFile;
  readonly use?: "Disk" | "Disc";
  readonly node: string;
  readonly storage: string;
  readonly fileName: string;
  /** What was decided about, where somebody decided. Another file of the same name: `changed`. */
  readonly seen?: SeenFile;
}

/** Whether a Claim proves that Berth brought the file which is to be removed. */
export function provesFile({ fileClaim, use, node, storage, fileName }: RemoveImage): boolean {
  const { target, state, file } = fileClaim;
  const isBound = target === "File" && state === "Bound";
  const isThere = fileClaim.node === undefined || fileClaim.node === node;
  const content = use === "Disc" ? "ISO" : "Image";
  const isIt = file?.name === fileName && file.storage === storage && file.content === content;
  return isBound && isThere && isIt;
}
