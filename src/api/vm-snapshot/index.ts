import { ageColumn, column, conditionColumn, defineKind } from "../kind.ts";
import type { ObjectOf, WrittenObjectOf } from "../kind.ts";
import { conditions, observedGeneration } from "../parts/conditions.ts";
import { objectName, partName, text, time } from "../parts/names.ts";
import { failure, operation, waitingFor } from "../parts/progress.ts";
import { ref } from "../parts/references.ts";
import { sharedConditionMeanings, sharedReasonMeanings, wordsOf } from "../reasons.ts";
import type { Meanings } from "../reasons.ts";
import {
  array,
  boolean,
  enumeration,
  immutable,
  integer,
  object,
  observedBytes,
  optional,
  withDefault,
} from "../schema/index.ts";
import type { ReadOf } from "../schema/index.ts";

const fixed = "a snapshot is taken once: make another VMSnapshot instead";

const spec = object("What is kept.", {
  vmRef: ref("VirtualMachine", "The VirtualMachine of this namespace whose state is kept.", {
    rules: [immutable(fixed)],
  }),
  includeMemory: withDefault(
    boolean("Keep the memory too, so that a return continues the running guest.", {
      rules: [immutable(fixed)],
    }),
    false,
  ),
  quiesce: withDefault(
    boolean("Ask the agent to quiet the file systems meanwhile. Without an agent it is not done.", {
      rules: [immutable(fixed)],
    }),
    true,
  ),
  description: optional(text("Notes for people, shown on the hypervisor.", 1024)),
  keepSeconds: optional(
    integer("After how long the snapshot is deleted. Absent: never by itself.", {
      minimum: 60,
      maximum: 315_360_000,
    }),
  ),
  deletionPolicy: withDefault(
    enumeration("What becomes of the snapshot when this object is deleted.", ["Delete", "Retain"]),
    "Delete",
  ),
});

const status = object("The snapshot as it was last seen.", {
  observedGeneration: optional(observedGeneration),
  snapshotId: optional(text("Its name on the hypervisor.", 128)),
  hypervisor: optional(objectName("The Hypervisor that it is on.")),
  takenAt: optional(time("When it was taken.")),
  expiresAt: optional(time("When it is deleted.")),
  quiesced: optional(boolean("Whether the file systems were quiet.")),
  size: optional(observedBytes("The space that it takes, where the hypervisor says so.")),
  disks: optional(
    array("The disks that it holds.", partName("A disk, by name."), { maxItems: 64 }),
  ),
  operation: optional(operation),
  failure: optional(failure),
  waitingFor: optional(waitingFor),
  conditions: optional(conditions),
});

const conditionMeanings = {
  ...sharedConditionMeanings,
  Ready: "The snapshot is there and can be returned to.",
} as const satisfies Meanings;

const reasonMeanings = {
  ...sharedReasonMeanings,
  Taking: "The snapshot is being taken.",
  Taken: "The snapshot is there.",
  Expired: "keepSeconds are over, and the snapshot is being deleted.",
} as const satisfies Meanings;

export const vmSnapshotConditions: { readonly [K in keyof typeof conditionMeanings]: K } =
  wordsOf(conditionMeanings);
export const vmSnapshotReasons: { readonly [K in keyof typeof reasonMeanings]: K } =
  wordsOf(reasonMeanings);

/** States to return to. */
export const vmSnapshotKind = defineKind({
  kind: "VMSnapshot",
  plural: "vmsnapshots",
  shortNames: ["vmsnap"],
  namespaced: true,
  served: false,
  description:
    "A VMSnapshot keeps the state of a VirtualMachine at one moment, on the hypervisor, to return to by a VMRestore. It is no backup: it lives on the same storage as the disks.",
  spec,
  status,
  columns: [
    column("VM", ".spec.vmRef.name", "The VirtualMachine."),
    { ...column("Taken", ".status.takenAt", "When it was taken."), type: "date" },
    {
      ...column("Memory", ".spec.includeMemory", "Whether memory is kept too."),
      type: "boolean",
      priority: 1,
    },
    conditionColumn("Ready", "Ready"),
    conditionColumn("Reason", "Ready", "reason"),
    ageColumn,
  ],
  conditions: { types: conditionMeanings, reasons: reasonMeanings },
});

export type VMSnapshot = ObjectOf<typeof vmSnapshotKind>;
export type WrittenVMSnapshot = WrittenObjectOf<typeof vmSnapshotKind>;
export type VMSnapshotSpec = ReadOf<typeof spec>;
export type VMSnapshotStatus = ReadOf<typeof status>;
