import { hypervisorReasons } from "../../api/index.ts";
import type { Hypervisor } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import { jsonEqual } from "../../kernel/json.ts";

/** A Hypervisor's trouble: what it is, and the reason that its conditions give. */
export interface Trouble {
  readonly reason: string;
  readonly failure: Failure;
  readonly conflictsWith?: string;
}

/**
 * Credentials are sent only to the endpoints that they were given for. When those change, the
 * Secret has to be written anew, or another one named: a person's word that they may go there.
 */
export function planCredentials(
  { metadata, spec, status }: Hypervisor,
  secret: { readonly key: string; readonly resourceVersion: string } | undefined,
): Trouble | undefined {
  const used = status?.credentials;
  if (secret === undefined || used === undefined) return undefined;
  const isSameSecret =
    used.secret === secret.key && used.resourceVersion === secret.resourceVersion;
  if (!isSameSecret || jsonEqual(used.endpoints, spec.endpoints)) return undefined;
  return {
    reason: hypervisorReasons.CredentialsNotRenewed,
    failure: {
      category: "PermissionDenied",
      message: `The endpoints of the Hypervisor ${metadata.name ?? ""} changed, and its credentials were given for others: ${used.endpoints.join(", ")}.`,
      remedy: `Write the Secret ${secret.key} anew, or name another in spec.credentials.`,
    },
  };
}

/**
 * Whether a Secret for unlocking may be used: it was written, or named, after these endpoints were.
 * Otherwise locks are left to people; everything else goes on.
 */
export function mayUnlock(
  { spec, status }: Hypervisor,
  secret: { readonly key: string; readonly resourceVersion: string },
): boolean {
  const used = status?.unlockCredentials;
  if (used === undefined) return true;
  const isSame = used.secret === secret.key && used.resourceVersion === secret.resourceVersion;
  return !isSame || jsonEqual(used.endpoints, spec.endpoints);
}

/** Whether the system that answered is this Hypervisor's to use. Pure. */
export function planIdentity(
  hypervisor: Hypervisor,
  systemId: string,
  others: readonly Hypervisor[],
): Trouble | undefined {
  const { metadata, spec } = hypervisor;
  if (spec.systemId !== undefined && spec.systemId !== systemId) {
    return {
      reason: hypervisorReasons.SystemChanged,
      failure: {
        category: "IdentityConflict",
        message:
          `Another system answers: ${systemId} instead of ${spec.systemId}. ` +
          "Nothing is written to it.",
        remedy: "Put the endpoints back, or make another Hypervisor object for the other system.",
      },
    };
  }
  const first = others
    .filter((other) => other.metadata.uid !== metadata.uid && other.spec.systemId === systemId)
    .find((other) => spec.systemId === undefined || isEarlier(other, hypervisor));
  if (first === undefined) return undefined;
  const name = first.metadata.name ?? "";
  return {
    reason: hypervisorReasons.SystemClaimedTwice,
    conflictsWith: name,
    failure: {
      category: "IdentityConflict",
      message: `The Hypervisor ${name} already stands for this system.`,
      remedy: `Use the Hypervisor ${name}, or delete it first.`,
    },
  };
}

function isEarlier(left: Hypervisor, right: Hypervisor): boolean {
  return ageText(left) < ageText(right);
}

function ageText({ metadata }: Hypervisor): string {
  return `${metadata.creationTimestamp ?? ""} ${metadata.uid ?? ""}`;
}
