import { ageColumn, column, conditionColumn, defineKind } from "../kind.ts";
import type { ObjectOf, WrittenObjectOf } from "../kind.ts";
import { conditions, observedGeneration } from "../parts/conditions.ts";
import { text } from "../parts/names.ts";
import { failure } from "../parts/progress.ts";
import { sharedConditionMeanings, sharedReasonMeanings, wordsOf } from "../reasons.ts";
import type { Meanings } from "../reasons.ts";
import { integer, object, optional, rule, withDefault } from "../schema/index.ts";
import type { ReadOf } from "../schema/index.ts";
import { vmSetSpec } from "./spec.ts";

const members = { minimum: 0, maximum: 2000 };

const status = object("The set as it was last seen.", {
  observedGeneration: optional(observedGeneration),
  replicas: withDefault(integer("Members that there are.", members), 0),
  readyReplicas: withDefault(integer("Members that are Ready.", members), 0),
  updatedReplicas: withDefault(integer("Members that are as the template says.", members), 0),
  selector: optional(text("Selects the members, for the scale subresource.", 256)),
  currentRevision: optional(text("The template that members had before the rollout.", 64)),
  updateRevision: optional(text("The template that members get.", 64)),
  failure: optional(failure),
  conditions: optional(conditions),
});

const conditionMeanings = {
  ...sharedConditionMeanings,
  Ready: "All members are there, Ready, and as the template says.",
  Available: "Not more members are missing than rollout.maxUnavailable allows.",
} as const satisfies Meanings;

const reasonMeanings = {
  ...sharedReasonMeanings,
  Scaling: "Members are being added or removed.",
  RollingOut: "Members are being changed to the template.",
  GateNotPassed: "A changed member does not get the conditions of rollout.gate.",
  DeadlineExceeded: "The rollout made no progress within rollout.deadlineSeconds.",
  NameTaken: "An object with a member's name exists and does not belong to the set.",
} as const satisfies Meanings;

export const vmSetConditions: { readonly [K in keyof typeof conditionMeanings]: K } =
  wordsOf(conditionMeanings);
export const vmSetReasons: { readonly [K in keyof typeof reasonMeanings]: K } =
  wordsOf(reasonMeanings);

/** Machines that are alike. */
export const vmSetKind = defineKind({
  kind: "VMSet",
  plural: "vmsets",
  shortNames: ["vmset"],
  namespaced: true,
  served: false,
  description:
    "A VMSet keeps a number of VirtualMachines that are made from one template. Its members are named after it with an ordinal, from 0.",
  spec: vmSetSpec,
  status,
  scale: {
    specReplicasPath: ".spec.replicas",
    statusReplicasPath: ".status.replicas",
    labelSelectorPath: ".status.selector",
  },
  rules: [
    rule(
      "size(self.metadata.name) <= 58",
      "the name of a VMSet has at most 58 characters, because its members' names add an ordinal to it",
    ),
  ],
  columns: [
    { ...column("Desired", ".spec.replicas", "Members that there should be."), type: "integer" },
    { ...column("Current", ".status.replicas", "Members that there are."), type: "integer" },
    {
      ...column("Updated", ".status.updatedReplicas", "Members that are as the template says."),
      type: "integer",
    },
    { ...column("Ready", ".status.readyReplicas", "Members that are Ready."), type: "integer" },
    conditionColumn("Reason", "Ready", "reason"),
    ageColumn,
  ],
  conditions: { types: conditionMeanings, reasons: reasonMeanings },
});

export type VMSet = ObjectOf<typeof vmSetKind>;
export type WrittenVMSet = WrittenObjectOf<typeof vmSetKind>;
export type VMSetSpec = ReadOf<typeof vmSetSpec>;
export type VMSetStatus = ReadOf<typeof status>;
