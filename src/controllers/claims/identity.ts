import { createHash } from "node:crypto";

/**
 * The identity of the VM that an installation creates for an object. It follows from both alone, so
 * every run of the installation chooses the same, also one that was started from a backup and knows
 * nothing of the other: a VM that one of them created is proven to be this object's to the other.
 * The layout is UUID version 8 (RFC 9562).
 */
export function identityOf(installation: string, uid: string): string {
  return uuidOf(`vm\n${installation}\n${uid}`);
}

/** A file carries no ownership marker: its identity is only in its Claim. */
export function fileIdentityOf(installation: string, uid: string, claim: string): string {
  return uuidOf(`file\n${installation}\n${uid}\n${claim}`);
}

function uuidOf(text: string): string {
  const bytes = createHash("sha256").update(text).digest();
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x80, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString("hex");
  const parts = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)];
  return [...parts, hex.slice(20, 32)].join("-");
}
