import { createHash } from "node:crypto";

/**
 * The name of the one Claim that there can be for an id on a system. Creating it is the unique
 * index, in both homes; the separator cannot occur in either part.
 */
export function claimName(systemId: string, externalId: string): string {
  const hash = createHash("sha256").update(`${systemId}\n${externalId}`).digest("hex");
  return `c-${hash.slice(0, 40)}`;
}
