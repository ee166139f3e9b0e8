import { createHash } from "node:crypto";
import type { Claim, ClaimSpec } from "../../api/index.ts";
import type { ObjectClient } from "../../client/index.ts";
import { objectKey, type ObjectMeta } from "../../kernel/object.ts";
import { ApiError } from "../../kernel/status.ts";

/** The label by which a server finds the Claims of an object. */
const name = "berth.dev/owner";

/**
 * A digest of namespace and name, which fits into a label whatever their length. Not of the uid: an
 * object that comes back from an export has another one, and its Claim still names the old.
 */
function digestOf(owner: Named, target: ClaimSpec["target"]): string {
  const text = target === "File" ? `VMImage ${objectKey(owner)}` : objectKey(owner);
  return createHash("sha256").update(text).digest("hex").slice(0, 40);
}

interface Named {
  readonly namespace?: string;
  readonly name?: string;
}

/** Selects the Claims of a VirtualMachine, or those of a VMImage: both may have the same name. */
function ownedBy(owner: Named, target: ClaimSpec["target"]): string {
  return `${name}=${digestOf(owner, target)}`;
}

/**
 * The Claims of an object, as the server has them now. Where the kind itself was deleted, an object
 * that is deleted as well has none any more.
 */
export async function listOwned(
  claims: Pick<ObjectClient<Claim>, "list">,
  owner: ObjectMeta,
  target: ClaimSpec["target"] = "VM",
): Promise<readonly Claim[]> {
  try {
    return (await claims.list({ labelSelector: ownedBy(owner, target) })).items;
  } catch (error) {
    const isKindGone = error instanceof ApiError && error.code === 404;
    if (isKindGone && owner.deletionTimestamp !== undefined) return [];
    throw error;
  }
}

/** Selects the Claims that 0.1 wrote and nobody has rewritten, as an old export brings them. */
export const unlabelled = `!${name}`;

/** Whether this release, or a later one, wrote it. */
export function isLabelled({ labels }: ObjectMeta): boolean {
  return labels?.[name] !== undefined;
}

export function hasOwnerLabel({ metadata, spec }: Claim): boolean {
  return metadata.labels?.[name] === digestOf(spec.owner, spec.target);
}

/** The Claim with the label of its owner. */
export function withOwnerLabel(claim: Claim): Claim {
  const { metadata, spec } = claim;
  const labels = { ...metadata.labels, [name]: digestOf(spec.owner, spec.target) };
  return { ...claim, metadata: { ...metadata, labels } };
}
