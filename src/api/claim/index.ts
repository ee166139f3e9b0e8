import { ageColumn, column, defineKind } from "../kind.ts";
import type { ObjectOf, WrittenObjectOf } from "../kind.ts";
import type { ReadOf } from "../schema/index.ts";
import { claimSpec } from "./spec.ts";

/** The ledger of what belongs to whom. */
export const claimKind = defineKind({
  kind: "Claim",
  plural: "claims",
  shortNames: ["bclaim"],
  namespaced: false,
  served: true,
  description:
    "A Claim says which VM or file on which hypervisor belongs to which object. It is Berth's own ledger: controllers write it, and nobody else. Its name is a hash of the hypervisor's own identity and the id there, so that only one can exist for each VM or file.",
  spec: claimSpec,
  columns: [
    column("Hypervisor", ".spec.hypervisor.name", "The Hypervisor."),
    column("Target", ".spec.target", "What it is: a VM or a file."),
    column("ID", ".spec.externalId", "The id on the hypervisor."),
    column("State", ".spec.state", "The state of the Claim."),
    column("Origin", ".spec.origin", "Whether Berth created it."),
    column("Namespace", ".spec.owner.namespace", "The namespace of the owner."),
    column("Owner", ".spec.owner.name", "The object that it belongs to."),
    { ...column("Identity", ".spec.identity", "The VM's identity."), priority: 1 },
    ageColumn,
  ],
});

export { currentClaim, isOldClaim } from "./upgrade.ts";
export type Claim = ObjectOf<typeof claimKind>;
export type WrittenClaim = WrittenObjectOf<typeof claimKind>;
export type ClaimSpec = ReadOf<typeof claimSpec>;
