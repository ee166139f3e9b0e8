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
    "A Claim says which machine on which hypervisor belongs to which object. It is Berth's own ledger: controllers write it, and nobody else. Its name is a hash of the hypervisor's own identity and the id there, so that only one can exist for each machine.",
  spec: claimSpec,
  columns: [
    column("Hypervisor", ".spec.hypervisor.name", "The Hypervisor."),
    column("ID", ".spec.externalId", "The id on the hypervisor."),
    column("State", ".spec.state", "What the Claim stands for now."),
    column("Origin", ".spec.origin", "Whether Berth made the machine."),
    column("Namespace", ".spec.owner.namespace", "The namespace of the owner."),
    column("Owner", ".spec.owner.name", "The object that it belongs to."),
    { ...column("Identity", ".spec.identity", "The machine's identity."), priority: 1 },
    ageColumn,
  ],
});

export type Claim = ObjectOf<typeof claimKind>;
export type WrittenClaim = WrittenObjectOf<typeof claimKind>;
export type ClaimSpec = ReadOf<typeof claimSpec>;
