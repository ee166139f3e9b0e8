import { ageColumn, column, conditionColumn, defineKind } from "../kind.ts";
import type { ObjectOf, WrittenObjectOf } from "../kind.ts";
import { conditions, observedGeneration } from "../parts/conditions.ts";
import { hypervisorName, objectName, text, time, uuid } from "../parts/names.ts";
import { failedSteps, failure, operation, waitingFor } from "../parts/progress.ts";
import { namespacedRef } from "../parts/references.ts";
import { sharedConditionMeanings, sharedReasonMeanings, wordsOf } from "../reasons.ts";
import type { Meanings } from "../reasons.ts";
import {
  array,
  enumeration,
  immutable,
  integer,
  object,
  observedBytes,
  optional,
  rule,
  set,
  string,
} from "../schema/index.ts";
import type { ReadOf } from "../schema/index.ts";

const found = "an Orphan is about one thing: this cannot change";

const decisions = ["Keep", "Adopt", "Destroy"] as const;

const spec = object(
  "What was found, and what a person says about it.",
  {
    hypervisor: objectName("Name of the Hypervisor that it is on.", { rules: [immutable(found)] }),
    kind: enumeration(
      "What it is.",
      ["Machine", "Husk", "Volume", "Snapshot", "ISO", "Image", "Lock"],
      { rules: [immutable(found)] },
    ),
    externalId: string("Its id on the hypervisor.", {
      minLength: 1,
      maxLength: 512,
      rules: [immutable(found)],
    }),
    decision: optional(
      enumeration(
        "A person's word. Keep: leave it and stop reporting. Adopt: make it the machine of adoptAs. Destroy: delete it from the hypervisor. `berth orphans` writes this.",
        decisions,
      ),
    ),
    confirm: optional(
      string("The externalId once more, typed by the person who decides.", { maxLength: 512 }),
    ),
    observation: optional(
      text(
        "The value of status.observation that the person decided about. `berth orphans` writes it. Destroy is carried out only while that is what is there. Absent: what the status reported when the first decision was written.",
        64,
      ),
    ),
    adoptAs: optional(
      namespacedRef("VirtualMachine", "The VirtualMachine that is made for it when it is adopted."),
    ),
  },
  {
    rules: [
      rule(
        "!has(self.decision) || (has(self.confirm) && self.confirm == self.externalId)",
        "a decision needs confirm with the same value as externalId, so that nothing is decided by mistake",
        { reason: "FieldValueRequired", fieldPath: ".confirm" },
      ),
      rule(
        "!has(self.decision) || (self.decision == 'Adopt') == has(self.adoptAs)",
        "decision: Adopt needs adoptAs, the namespace and name of the VirtualMachine; the others have none",
        { fieldPath: ".adoptAs" },
      ),
      rule(
        "!has(self.decision) || self.decision != 'Adopt' || self.kind == 'Machine'",
        "only a Machine can be adopted: a Volume can be taken as source.importedDisk with mode: Take",
        { fieldPath: ".decision" },
      ),
    ],
  },
);

const status = object("What is known about it.", {
  observedGeneration: optional(observedGeneration),
  ownership: optional(
    enumeration(
      "Ours: mark and Claim of this installation agree. Marked: only our mark says so: no Claim knows it, or one that was written from the mark. Probable: a failed operation of Berth probably left it, and nothing proves it: see the evidence. Unattributed: nothing says whose it is; on shared storage it may be in use elsewhere.",
      ["Ours", "Marked", "Probable", "Unattributed"],
    ),
  ),
  evidence: optional(
    array("Why it counts as that, one finding each.", text("A finding.", 512), { maxItems: 16 }),
  ),
  identity: optional(uuid("The identity in its mark.")),
  claim: optional(objectName("The Claim that knows it.")),
  node: optional(hypervisorName("The node that it is on.")),
  storage: optional(hypervisorName("The storage that it is on.")),
  fileName: optional(text("The name of the file, where it is one.", 512)),
  powerState: optional(text("Whether a machine runs.", 32)),
  size: optional(observedBytes("The space that it takes.")),
  createdAt: optional(time("When it was created, where the storage reports it.")),
  observation: optional(
    text(
      "Identifies what was seen: a digest of this object and of the node, storage, size, identity and creation time of the thing. Another thing under the same id has another one.",
      64,
    ),
  ),
  decidedFor: optional(
    object("What the decision was taken for. If something else is there, nothing is destroyed.", {
      generation: integer("The generation of the object that the decision is part of.", {
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
      }),
      observation: optional(
        text("The observation. Absent: nothing had been reported when it was decided.", 64),
      ),
      seen: optional(text("What was reported of it then, for people.", 512)),
    }),
  ),
  reclaimed: optional(observedBytes("The space that was freed when it was destroyed.")),
  firstSeenAt: optional(time("When it was first seen.")),
  sightings: optional(
    integer("In how many sweeps at least it was seen before it was reported.", {
      minimum: 1,
      maximum: 1_000_000,
    }),
  ),
  allowedDecisions: optional(
    set("What can be decided about it.", enumeration("A decision.", decisions), { maxItems: 3 }),
  ),
  blocks: optional(
    array(
      "VirtualMachines that cannot be made as long as it is there.",
      text("A VirtualMachine, as namespace/name.", 320),
      { maxItems: 16 },
    ),
  ),
  command: optional(
    text("The command that clears it on the hypervisor, where Berth may not do it.", 1024),
  ),
  operation: optional(operation),
  failure: optional(failure),
  failedSteps: optional(failedSteps),
  waitingFor: optional(waitingFor),
  handledReconcileAt: optional(
    text("The value of berth.dev/reconcile-at that was last acted upon.", 128),
  ),
  conditions: optional(conditions),
});

const conditionMeanings = {
  ...sharedConditionMeanings,
  Ready: "Nothing more has to be decided or done about it.",
} as const satisfies Meanings;

const reasonMeanings = {
  ...sharedReasonMeanings,
  DecisionNeeded: "A person has to say what becomes of it: berth orphans.",
  Kept: "It was decided to leave it.",
  Adopting: "It is being taken over.",
  Destroying: "It is being deleted.",
  DestroyingByPolicy:
    "It is being deleted because the Hypervisor says orphans.policy: DeleteOwned.",
  Gone: "It is no longer there.",
  ChangedSinceDecision:
    "Something else has this id than what was decided about. Nothing was destroyed: decide again.",
  NotAllowed: "What was decided cannot be done with it: see status.allowedDecisions.",
} as const satisfies Meanings;

export const orphanConditions: { readonly [K in keyof typeof conditionMeanings]: K } =
  wordsOf(conditionMeanings);
export const orphanReasons: { readonly [K in keyof typeof reasonMeanings]: K } =
  wordsOf(reasonMeanings);

/** Things that nothing declares. */
export const orphanKind = defineKind({
  kind: "Orphan",
  plural: "orphans",
  shortNames: ["orph"],
  namespaced: false,
  served: true,
  description:
    "An Orphan is something that was found on a hypervisor and that nothing declares: a machine, a half-made machine, a volume, a lock. It says what is known and waits for a person's decision. Deleting the object does nothing to the hypervisor.",
  spec,
  status,
  columns: [
    column("Hypervisor", ".spec.hypervisor", "The Hypervisor that it is on."),
    column("Kind", ".spec.kind", "What it is."),
    column("ID", ".spec.externalId", "Its id on the hypervisor."),
    column("Ownership", ".status.ownership", "Whose it is."),
    column("Size", ".status.size", "The space that it takes."),
    column("Decision", ".spec.decision", "What was decided."),
    conditionColumn("Reason", "Ready", "reason"),
    ageColumn,
  ],
  conditions: { types: conditionMeanings, reasons: reasonMeanings },
});

export type Orphan = ObjectOf<typeof orphanKind>;
export type WrittenOrphan = WrittenObjectOf<typeof orphanKind>;
export type OrphanSpec = ReadOf<typeof spec>;
export type OrphanStatus = ReadOf<typeof status>;
