import { ageColumn, column, conditionColumn, defineKind } from "../kind.ts";
import type { ObjectOf, WrittenObjectOf } from "../kind.ts";
import { conditions, observedGeneration } from "../parts/conditions.ts";
import { objectName, time } from "../parts/names.ts";
import { failure, operation, waitingFor } from "../parts/progress.ts";
import { ref } from "../parts/references.ts";
import { sharedConditionMeanings, sharedReasonMeanings, wordsOf } from "../reasons.ts";
import type { Meanings } from "../reasons.ts";
import { enumeration, immutable, object, optional, withDefault } from "../schema/index.ts";
import type { ReadOf } from "../schema/index.ts";

const spec = object(
  "What to return to.",
  {
    snapshotRef: ref(
      "VMSnapshot",
      "The VMSnapshot of this namespace to return to. What was written since it was taken is lost.",
    ),
    powerState: withDefault(
      enumeration("Whether the machine runs afterwards. Declared: as its VirtualMachine says.", [
        "Declared",
        "Stopped",
      ]),
      "Declared",
    ),
  },
  { rules: [immutable("a VMRestore is done once: make another VMRestore instead")] },
);

const status = object("How far the return is.", {
  observedGeneration: optional(observedGeneration),
  vm: optional(objectName("The VirtualMachine that returns.")),
  startedAt: optional(time("When it began.")),
  completedAt: optional(time("When it ended.")),
  operation: optional(operation),
  failure: optional(failure),
  waitingFor: optional(waitingFor),
  conditions: optional(conditions),
});

const conditionMeanings = {
  ...sharedConditionMeanings,
  Ready: "The machine has returned to the snapshot. It stays so whatever happens later.",
} as const satisfies Meanings;

const reasonMeanings = {
  ...sharedReasonMeanings,
  Restoring: "The machine is returning to the snapshot.",
  Restored: "The machine has returned to the snapshot.",
} as const satisfies Meanings;

export const vmRestoreConditions: { readonly [K in keyof typeof conditionMeanings]: K } =
  wordsOf(conditionMeanings);
export const vmRestoreReasons: { readonly [K in keyof typeof reasonMeanings]: K } =
  wordsOf(reasonMeanings);

/** Returns to a snapshot. */
export const vmRestoreKind = defineKind({
  kind: "VMRestore",
  plural: "vmrestores",
  shortNames: ["vmrest"],
  namespaced: true,
  served: false,
  description:
    "A VMRestore returns a VirtualMachine to a VMSnapshot, once. Deleting it afterwards changes nothing.",
  spec,
  status,
  columns: [
    column("Snapshot", ".spec.snapshotRef.name", "The VMSnapshot."),
    column("VM", ".status.vm", "The VirtualMachine."),
    conditionColumn("Ready", "Ready"),
    conditionColumn("Reason", "Ready", "reason"),
    ageColumn,
  ],
  conditions: { types: conditionMeanings, reasons: reasonMeanings },
});

export type VMRestore = ObjectOf<typeof vmRestoreKind>;
export type WrittenVMRestore = WrittenObjectOf<typeof vmRestoreKind>;
export type VMRestoreSpec = ReadOf<typeof spec>;
export type VMRestoreStatus = ReadOf<typeof status>;
