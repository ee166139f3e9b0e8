/** Lets the hypervisor bring an image file. Present under that name already: done. */
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

/** Uploads an image file as it comes. Whole there already: done, and nothing of it is read. */
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
}

/**
 * Removes an image file that Berth brought: one that carries its checksum in its name. While any
 * work goes on that may read it: blocked. Gone already: done.
 */
export interface RemoveImage {
  readonly kind: "removeImage";
  readonly use?: "Disk" | "Disc";
  readonly node: string;
  readonly storage: string;
  readonly fileName: string;
  /** `sha256:` or `sha512:` and the digest in hexadecimal. */
  readonly checksum: string;
}
