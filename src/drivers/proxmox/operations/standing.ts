import type { Basis, Begun, ClaimedMachine, Failure, Mark } from "../../../hypervisor/index.ts";
import { guard } from "../../../kernel/guard.ts";
import type { DriverContext } from "../context.ts";
import type { ConfigRead, WholeConfig } from "../config-reader.ts";
import { judge } from "../identity.ts";
import { present } from "../translate/present.ts";
import type { Slots } from "../translate/shape.ts";

/** A machine that was proven ours, as it was seen when the operation was decided. */
export interface Standing {
  readonly place: { readonly node: string; readonly externalId: string };
  readonly config: WholeConfig;
  readonly mark: Mark;
}

export type Stood =
  | { readonly ok: true; readonly standing: Standing }
  | { readonly ok: false; readonly begun: Begun };

/** What an operation is about. */
export interface Target {
  readonly claim: ClaimedMachine;
  readonly at: Basis;
}

/** For writes that carry the digest: the server itself refuses if the machine has changed. */
export async function standAt(context: DriverContext, target: Target): Promise<Stood> {
  const place = placeOf(target);
  return judged(target, await context.configs.readAt(place, target.at.version));
}

/** For writes that carry no digest: the mark is read now, in the last moment that there is. */
export async function standNow(context: DriverContext, target: Target): Promise<Stood> {
  return judged(target, await context.configs.read(placeOf(target)));
}

export function placeOf({ claim, at }: Target): { node: string; externalId: string } {
  return { node: at.node, externalId: claim.externalId };
}

function judged(target: Target, read: ConfigRead): Stood {
  const { claim, at } = target;
  if (read.type === "failed") return not({ outcome: "refused", failure: read.failure });
  if (read.type === "notHere") {
    return not({ outcome: "changed", detail: `VM ${claim.externalId} is not on ${at.node}` });
  }
  const { config } = read;
  const verdict = judge(config, claim);
  if (verdict.is === "foreign") {
    return not({ outcome: "refused", failure: conflict(claim, verdict.detail) });
  }
  if (verdict.is === "husk") {
    return not({ outcome: "changed", detail: `VM ${claim.externalId} has no content` });
  }
  if (!guard("vm-version-as-decided", config.digest === at.version)) {
    return not({ outcome: "changed", detail: `VM ${claim.externalId} was changed meanwhile` });
  }
  return { ok: true, standing: { place: placeOf(target), config, mark: verdict.mark } };
}

export function conflict(claim: ClaimedMachine, detail: string): Failure {
  return {
    category: "IdentityConflict",
    message: `VM ${claim.externalId} is not provably ours: ${detail}`,
  };
}

/** The mark of a Claim's machine. */
export function markFor(claim: ClaimedMachine, slots: Slots): Mark {
  const { externalId, identity, installation, owner } = claim;
  const { namespace, name } = owner;
  return {
    state: "Owned",
    installation,
    owner: { namespace, name },
    identity,
    externalId,
    disks: slots.disks,
    networks: slots.networks,
    ...present({ cdroms: slots.cdroms, pci: slots.pci, usb: slots.usb }),
  };
}

function not(begun: Begun): Stood {
  return { ok: false, begun };
}
