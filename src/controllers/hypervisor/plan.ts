import { hypervisorReasons } from "../../api/index.ts";
import type { Claim, Hypervisor } from "../../api/index.ts";
import type { Failure } from "../../hypervisor/index.ts";
import { listText } from "../../kernel/list-text.ts";
import { guard } from "../../kernel/guard.ts";
import { jsonEqual } from "../../kernel/json.ts";
import type { UsedSecret } from "./given-credentials.ts";

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
  { metadata, spec }: Hypervisor,
  secret: { readonly key: string; readonly resourceVersion: string } | undefined,
  used: UsedSecret | undefined,
): Trouble | undefined {
  if (secret === undefined || used === undefined) return undefined;
  const isSameSecret =
    used.secret === secret.key && used.resourceVersion === secret.resourceVersion;
  const isGivenFor = !isSameSecret || jsonEqual(used.endpoints, spec.endpoints);
  if (guard("credentials-given-for-endpoints", isGivenFor)) return undefined;
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
  { spec }: Hypervisor,
  secret: { readonly key: string; readonly resourceVersion: string },
  used: UsedSecret | undefined,
): boolean {
  if (used === undefined) return true;
  const isSame = used.secret === secret.key && used.resourceVersion === secret.resourceVersion;
  const isGivenFor = !isSame || jsonEqual(used.endpoints, spec.endpoints);
  return guard("unlock-credentials-given-for-endpoints", isGivenFor);
}

/** What is still on a Hypervisor, or means it. */
export interface Uses {
  /** The keys of VirtualMachines. */
  readonly vms: readonly string[];
  /** How many Claims are held on it. */
  readonly held: number;
  /** Claims of disk-holder VMs with disks that say onDelete: Retain. */
  readonly retaining: readonly Claim[];
}

/** Why a Hypervisor that is being deleted has to stay. */
export interface InUse {
  readonly reason: string;
  readonly message: string;
}

/**
 * Why a Hypervisor must not go yet; undefined if it may. Without it Berth could not reach what is
 * on it any more, nor give a retained disk back to the object that asks for it. Pure.
 */
export function planInUse({ vms, held, retaining }: Uses): InUse | undefined {
  const [first = ""] = vms;
  if (!guard("hypervisor-without-vms", vms.length === 0)) {
    const others = vms.length === 1 ? "" : ` and ${vms.length - 1} more`;
    return {
      reason: hypervisorReasons.VirtualMachinesRemain,
      message: `The VirtualMachine ${first}${others} uses it. Delete it, or let it go with berth forget.`,
    };
  }
  if (!guard("hypervisor-without-held-claims", held === 0)) {
    return {
      reason: hypervisorReasons.ClaimsRemain,
      message:
        `${held} Claims hold what Berth made on it: kubectl get claims. Files of VMImages are ` +
        "removed before it goes. VMs whose objects are gone: see berth orphans. To leave something " +
        "there without Berth: kubectl delete claim NAME. That destroys nothing.",
    };
  }
  const [claim] = retaining;
  if (claim === undefined || guard("hypervisor-without-retained-disks", retaining.length === 0)) {
    return undefined;
  }
  return { reason: hypervisorReasons.RetainedDisksRemain, message: retainedText(claim) };
}

function retainedText({ metadata, spec }: Claim): string {
  const { owner, externalId, volumes = [] } = spec;
  const kept = volumes.filter(({ onDelete }) => onDelete === "Retain").map(({ id }) => id);
  const key = `${owner.namespace}/${owner.name}`;
  return (
    `The disk-holder VM ${externalId} holds disks of ${key} that say onDelete: Retain: ` +
    `${listText(kept)}. To use them again, create the VirtualMachine ${key}, which takes them ` +
    `back. To leave them on the hypervisor without Berth: kubectl delete claim ` +
    `${metadata.name ?? ""}. That destroys nothing.`
  );
}

/** Whether the system that answered is this Hypervisor's to use. Pure. */
export function planIdentity(
  hypervisor: Hypervisor,
  systemId: string,
  others: readonly Hypervisor[],
): Trouble | undefined {
  const { metadata, spec } = hypervisor;
  if (!guard("system-unchanged", spec.systemId === undefined || spec.systemId === systemId)) {
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
    .filter((other) => other.metadata.uid !== metadata.uid)
    .filter((other) => !guard("system-claimed-once", other.spec.systemId !== systemId))
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
