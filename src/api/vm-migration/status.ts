import { conditions, observedGeneration } from "../parts/conditions.ts";
import { externalId, objectName, partName, text, time, volumeId } from "../parts/names.ts";
import { failure, operation, waitingFor } from "../parts/progress.ts";
import {
  array,
  boolean,
  enumeration,
  integer,
  listMap,
  object,
  observedBytes,
  optional,
} from "../schema/index.ts";

/** In the order in which a migration passes through them. */
export const migrationPhases = [
  "Planning",
  "AwaitingApproval",
  "Protecting",
  "Allocating",
  "Copying",
  "Syncing",
  "AwaitingCutover",
  "Stopping",
  "FinalSync",
  "Verifying",
  "Converting",
  "Rehearsing",
  "Committing",
  "Soaking",
  "Completed",
  "RollingBack",
  "RolledBack",
] as const;

const seconds = { minimum: 0, maximum: 31_536_000 };
const count = { minimum: 0, maximum: Number.MAX_SAFE_INTEGER };

const plan = object("How the move would go.", {
  hash: text("Names exactly this plan, for the annotation berth.dev/approve.", 64),
  findings: optional(
    array(
      "What was found, the worst first.",
      object("One finding.", {
        severity: enumeration("Whether it forbids the move.", ["Blocker", "Warning", "Note"]),
        topic: text("What it is about, as one word.", 64),
        message: text("What was found and what to do.", 1024),
      }),
      { maxItems: 32 },
    ),
  ),
  expectedSeconds: optional(integer("How long the move would take in all.", seconds)),
  expectedDowntimeSeconds: optional(integer("How long the machine would be down.", seconds)),
  bytes: optional(integer("How much would be copied.", count)),
});

const side = {
  hypervisor: objectName("The Hypervisor."),
  externalId: optional(externalId("The machine's id there.")),
};

const disks = listMap(
  "How far each disk is.",
  object("One disk.", {
    name: partName("The disk's name in the VirtualMachine."),
    sourceVolume: optional(volumeId("The volume that is copied.")),
    targetVolume: optional(volumeId("The volume that it is copied to.")),
    size: optional(observedBytes("How large it is.")),
    pass: optional(
      integer("Which pass over the disk this is, from 1.", { minimum: 1, maximum: 10_000 }),
    ),
    bytesDone: optional(integer("Bytes of this pass that are copied.", count)),
    bytesTotal: optional(integer("Bytes of this pass in all.", count)),
    verified: optional(boolean("Whether all of it was compared.")),
    rootHash: optional(text("The hash over the hashes of all its blocks.", 128)),
  }),
  { key: "name", maxItems: 64 },
);

export const vmMigrationStatus = object("How far the move is.", {
  observedGeneration: optional(observedGeneration),
  phase: optional(enumeration("Where it stands.", migrationPhases)),
  plan: optional(plan),
  approvedBy: optional(text("The plan's hash that was approved.", 64)),
  source: optional(object("Where the machine comes from.", side)),
  target: optional(object("Where it goes.", side)),
  disks: optional(disks),
  startedAt: optional(time("When copying began.")),
  stoppedAt: optional(time("When the machine was stopped on the source.")),
  cutoverAt: optional(time("When it was started on the target.")),
  keepSourceUntil: optional(time("Until when it can return.")),
  completedAt: optional(time("When the move was over.")),
  operation: optional(operation),
  failure: optional(failure),
  waitingFor: optional(waitingFor),
  conditions: optional(conditions),
});
