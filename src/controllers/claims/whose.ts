import type { Claim, ClaimSpec, VirtualMachine } from "../../api/index.ts";
import { guard } from "../../kernel/guard.ts";
import { objectKey } from "../../kernel/object.ts";
import { isFile } from "./files.ts";

/** Whether it is still to be found out if its VM can be created. Nothing was sent for it. */
export function isPending({ state, preflight }: ClaimSpec): boolean {
  return state === "Reserved" && preflight === "Pending";
}

/** Somebody lives in it. */
export function isHeld({ state }: ClaimSpec): boolean {
  return state === "Reserved" || state === "Bound";
}

export function isMachine(spec: ClaimSpec): boolean {
  return isHeld(spec) && spec.role === "VM" && !isFile(spec);
}

/** What quotas count: a Pending one only waits. */
export function isCounted(spec: ClaimSpec): boolean {
  return isMachine(spec) && !isPending(spec);
}

export function isHolder(claim: Claim, vm: VirtualMachine): boolean {
  const { identity = claim.spec.identity } = vm.status ?? {};
  const isOwn = isHeld(claim.spec) && guard("claim-of-this-object", isOwner(claim, vm));
  return isOwn && guard("claim-of-this-identity", claim.spec.identity === identity);
}

export function isOwner({ spec }: Claim, { metadata }: VirtualMachine): boolean {
  return objectKey(spec.owner) === objectKey(metadata) && spec.owner.uid === metadata.uid;
}

export function isSame(there: Claim, claim: Claim): boolean {
  const isOurs = there.spec.installation === claim.spec.installation;
  const isSameOwner = there.spec.owner.uid === claim.spec.owner.uid;
  if (!isOurs || !isSameOwner || there.spec.role !== claim.spec.role) return false;
  // The identity of a VM for which nothing was sent is written nowhere else.
  const isOnlyHere = isPending(there.spec) && there.spec.role === "VM";
  return isOnlyHere || there.spec.identity === claim.spec.identity;
}
