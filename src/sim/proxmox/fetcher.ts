/** What came of getting a URL: all that the model needs to know of a file. */
export type Fetched =
  | {
      readonly kind: "file";
      readonly sizeBytes: number;
      readonly sha256: string;
      readonly mimeType: string;
      /** The virtual size, if it is a disk image. */
      readonly virtualBytes?: number;
    }
  | { readonly kind: "status"; readonly status: number; readonly reason: string }
  | { readonly kind: "unreachable" };

/** The virtual size that the header of a qcow2 image states, or undefined if it is none. */
export function qcow2Size(bytes: Uint8Array): number | undefined {
  const header = Buffer.from(bytes.buffer, bytes.byteOffset, Math.min(bytes.byteLength, 32));
  if (header.length < 32 || header.readUInt32BE(0) !== 0x5146_49fb) return undefined;
  return Number(header.readBigUInt64BE(24));
}
