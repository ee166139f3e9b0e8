import { ageColumn, column, conditionColumn, defineKind } from "../kind.ts";
import type { ObjectOf, WrittenObjectOf } from "../kind.ts";
import { sharedConditionMeanings, sharedReasonMeanings, wordsOf } from "../reasons.ts";
import type { Meanings } from "../reasons.ts";
import type { ReadOf } from "../schema/index.ts";
import { vmMigrationSpec } from "./spec.ts";
import { vmMigrationStatus } from "./status.ts";

export { migrationPhases } from "./status.ts";

const conditionMeanings = {
  ...sharedConditionMeanings,
  Ready: "The goal is reached: planned, moved, or rolled back.",
  Approved: "The plan as it is now may be carried out.",
  Copied: "All disks are on the target and were compared.",
  SourceFenced: "The machine on the source is off, marked as moved, and does not start by itself.",
  SplitBrain: "The machine was seen running on both sides. Absent otherwise.",
} as const satisfies Meanings;

const reasonMeanings = {
  ...sharedReasonMeanings,
  Planned: "The plan is made.",
  Blocked: "The plan found what forbids the move: see status.plan.findings.",
  Copying: "Disks are being copied.",
  AwaitingCutover: "All but the last changes is copied: set cutover.when to Now.",
  CuttingOver: "The machine is being stopped here and started there.",
  Verifying: "The copies are being compared.",
  VerificationFailed: "A block on the target differs. It is copied again.",
  Soaking: "The machine runs on the target and can still return.",
  Completed: "The machine has moved.",
  RollingBack: "The machine is returning.",
  RolledBack: "The machine is where it came from.",
} as const satisfies Meanings;

export const vmMigrationConditions: { readonly [K in keyof typeof conditionMeanings]: K } =
  wordsOf(conditionMeanings);
export const vmMigrationReasons: { readonly [K in keyof typeof reasonMeanings]: K } =
  wordsOf(reasonMeanings);

/** Moves to another hypervisor. */
export const vmMigrationKind = defineKind({
  kind: "VMMigration",
  plural: "vmmigrations",
  shortNames: ["vmmig"],
  namespaced: true,
  served: false,
  description:
    "A VMMigration moves a VirtualMachine to another Hypervisor: plan, approve, copy, verify, cut over, and roll back if need be. The VirtualMachine stays the same object. The source is never deleted by it.",
  spec: vmMigrationSpec,
  status: vmMigrationStatus,
  columns: [
    column("VM", ".spec.vmRef.name", "The VirtualMachine."),
    column("From", ".status.source.hypervisor", "Where it comes from."),
    column("To", ".spec.target.hypervisorRef.name", "Where it goes."),
    column("Phase", ".status.phase", "Where the move stands."),
    conditionColumn("Ready", "Ready"),
    conditionColumn("Reason", "Ready", "reason"),
    ageColumn,
  ],
  conditions: { types: conditionMeanings, reasons: reasonMeanings },
});

export type VMMigration = ObjectOf<typeof vmMigrationKind>;
export type WrittenVMMigration = WrittenObjectOf<typeof vmMigrationKind>;
export type VMMigrationSpec = ReadOf<typeof vmMigrationSpec>;
export type VMMigrationStatus = ReadOf<typeof vmMigrationStatus>;
