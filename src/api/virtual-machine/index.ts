import { ageColumn, column, conditionColumn, defineKind } from "../kind.ts";
import type { ObjectOf, WrittenObjectOf } from "../kind.ts";
import type { ReadOf, WrittenOf } from "../schema/index.ts";
import { vmConditionMeanings, vmReasonMeanings } from "./conditions.ts";
import { objectRules } from "./rules.ts";
import { vmSpec } from "./spec.ts";
import { vmStatus } from "./status.ts";

export { vmConditions, vmReasons } from "./conditions.ts";

/** One VM. */
export const virtualMachineKind = defineKind({
  kind: "VirtualMachine",
  plural: "virtualmachines",
  shortNames: ["vm", "bvm"],
  namespaced: true,
  served: true,
  description:
    "A VirtualMachine is one machine on one hypervisor. It comes to exist as declared, stays so, and goes away when the object does.",
  spec: vmSpec,
  status: vmStatus,
  rules: objectRules,
  columns: [
    column("Hypervisor", ".spec.hypervisorRef.name", "The Hypervisor that it lives on."),
    column("Node", ".status.node", "The node that it is on."),
    column("ID", ".status.externalId", "Its id on the hypervisor."),
    column("Power", ".status.powerState", "Whether it runs."),
    column("Address", ".status.addresses[0].address", "The address to reach it by."),
    conditionColumn("Synced", "Synced"),
    conditionColumn("Ready", "Ready"),
    conditionColumn("Reason", "Ready", "reason"),
    ageColumn,
  ],
  conditions: { types: vmConditionMeanings, reasons: vmReasonMeanings },
});

export type VirtualMachine = ObjectOf<typeof virtualMachineKind>;
export type WrittenVirtualMachine = WrittenObjectOf<typeof virtualMachineKind>;
export type VirtualMachineSpec = ReadOf<typeof vmSpec>;
export type WrittenVirtualMachineSpec = WrittenOf<typeof vmSpec>;
export type VirtualMachineStatus = ReadOf<typeof vmStatus>;
