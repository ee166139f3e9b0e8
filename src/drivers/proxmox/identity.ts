import { readMark } from "../../hypervisor/index.ts";
import type { ClaimedMachine, ForeignReason, Mark } from "../../hypervisor/index.ts";
import { guard } from "../../kernel/guard.ts";
import type { PveConfig } from "./translate/config.ts";
import { identityOf } from "./translate/machine.ts";

/** Whose a machine is. `husk`: nothing is written in it, so the tasks have to tell. */
export type Verdict =
  | { readonly is: "ours"; readonly mark: Mark }
  | { readonly is: "husk"; readonly lock: string }
  | { readonly is: "foreign"; readonly reason: ForeignReason; readonly detail: string };

/**
 * Judges a config against a Claim. Ours only if the id under which it was read, the SMBIOS UUID
 * and every part of the mark agree with the Claim: a clone copies the description, a restore also
 * keeps the UUID, and a recycled VMID has neither. Pure.
 */
export function judge(config: PveConfig, claim: ClaimedMachine): Verdict {
  const { values } = config;
  const lock = values["lock"];
  if (lock !== undefined && isHuskConfig(config)) return { is: "husk", lock };
  const { mark, isBroken } = readMark(values["description"] ?? "");
  const identity = identityOf(values);
  if (mark === undefined) return unmarked(identity === claim.identity, isBroken);
  const reason = disagreement(mark, claim, identity);
  return reason === undefined ? { is: "ours", mark } : { is: "foreign", ...reason };
}

/** Whether nothing is written in a config but its lock. */
export function isHuskConfig({ values }: PveConfig): boolean {
  return values["lock"] !== undefined && isEmpty(values);
}

/**
 * POST /qemu and the end of a DELETE leave a file that holds its lock and nothing else; a clone
 * begins with one that has a comment of the server's own beside it, which reads like notes.
 */
function isEmpty({ description = "", ...rest }: PveConfig["values"]): boolean {
  const isOwnWords = description === "" || description.trim() === "qmclone temporary file";
  const isBare = Object.keys(rest).every((key) => key === "lock");
  return guard("placeholder-no-notes", isOwnWords) && guard("placeholder-no-content", isBare);
}

function unmarked(hasIdentity: boolean, isBroken: boolean): Verdict {
  if (hasIdentity) {
    const what = isBroken ? "Berth's line in the notes was damaged" : "Berth's line is gone";
    return { is: "foreign", reason: "MarkLost", detail: `${what}; the UUID is the right one` };
  }
  const detail = isBroken ? "its mark cannot be read" : "it bears no mark of Berth";
  return { is: "foreign", reason: "Stranger", detail };
}

function disagreement(
  mark: Mark,
  claim: ClaimedMachine,
  identity: string | undefined,
): { reason: ForeignReason; detail: string } | undefined {
  if (!guard("identity-installation", mark.installation === claim.installation)) {
    const detail = `it belongs to the installation ${mark.installation}`;
    return { reason: "OtherInstallation", detail };
  }
  if (!guard("identity-external-id", mark.externalId === claim.externalId)) {
    return { reason: "Copied", detail: `its mark was made for ${mark.externalId}` };
  }
  const owner = `${mark.owner.namespace}/${mark.owner.name}`;
  // Whoever had it, it is nobody's now; of a copy of it that cannot be said.
  const isWhole = mark.identity === identity;
  if (!guard("identity-not-released", mark.state !== "Released" || !isWhole)) {
    return { reason: "Released", detail: `${owner} let it go` };
  }
  const isSameOwner =
    mark.owner.namespace === claim.owner.namespace && mark.owner.name === claim.owner.name;
  if (!guard("identity-owner", isSameOwner)) {
    return { reason: "OtherOwner", detail: `it belongs to ${owner}` };
  }
  const isSameMark = guard("identity-of-marker", mark.identity === claim.identity);
  if (!isSameMark || !guard("identity-of-vm", identity === claim.identity)) {
    const detail = `its identity is ${identity ?? "none"}, its mark says ${mark.identity}`;
    return { reason: "Copied", detail };
  }
  return undefined;
}

/**
 * Whether a config is a clone that our own call made under the Claim's id: the mark that the call
 * carried agrees in everything, and only the UUID is the one that the server chose. Before the
 * Claim is bound no other machine can bear that mark, since its identity was never written
 * anywhere; afterwards this is a copy like any other, so ask only for a Claim that is reserved.
 */
export function isUnstampedClone({ values }: PveConfig, claim: ClaimedMachine): boolean {
  const { mark } = readMark(values["description"] ?? "");
  if (mark === undefined || mark.state !== "Owned") return false;
  if (identityOf(values) === claim.identity) return false;
  return disagreement(mark, claim, claim.identity) === undefined;
}
