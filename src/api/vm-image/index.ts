import { ageColumn, column, conditionColumn, defineKind } from "../kind.ts";
import type { ObjectOf, WrittenObjectOf } from "../kind.ts";
import { conditions, observedGeneration } from "../parts/conditions.ts";
import { hypervisorName, objectName, text, time, volumeId } from "../parts/names.ts";
import { failure, operation, otherFailedSteps, waitingFor } from "../parts/progress.ts";
import { sharedConditionMeanings, sharedReasonMeanings, wordsOf } from "../reasons.ts";
import type { Meanings } from "../reasons.ts";
import { array, boolean, enumeration, object, observedBytes, optional } from "../schema/index.ts";
import type { ReadOf } from "../schema/index.ts";
import { vmImageSpec } from "./spec.ts";

const copies = array(
  "Where the image is present, and where it is on its way.",
  object("One copy.", {
    hypervisor: objectName("Name of the Hypervisor."),
    storage: hypervisorName("The storage that holds it."),
    node: optional(hypervisorName("The node, where the storage is not shared.")),
    state: enumeration("How far it is.", ["Present", "Downloading", "Failed", "Missing"]),
    volume: optional(volumeId("Its id on the hypervisor.")),
    fileName: optional(text("The file's name on the storage.", 256)),
    size: optional(observedBytes("How large the file is.")),
    createdAt: optional(
      time("When the file was created or last changed, where the storage says so."),
    ),
    brought: boolean(
      "Whether Berth brought it, as its Claim says. What it did not bring it never deletes.",
    ),
    claim: optional(text("The Claim of the file, if it is this image's.", 253)),
    verified: boolean("Whether its checksum was verified."),
    message: optional(text("What is the matter with it.", 512)),
    operation: optional(operation),
    failure: optional(failure),
    failedSteps: optional(otherFailedSteps),
  }),
  { maxItems: 64 },
);

const status = object("Where the image is.", {
  observedGeneration: optional(observedGeneration),
  copies: optional(copies),
  operation: optional(operation),
  failure: optional(failure),
  handledReconcileAt: optional(
    text("The value of berth.dev/reconcile-at that was last acted upon.", 128),
  ),
  waitingFor: optional(waitingFor),
  conditions: optional(conditions),
});

const conditionMeanings = {
  ...sharedConditionMeanings,
  Ready: "The image can be used: it is present, or can be brought where it is needed.",
  ChecksumUnverified: "A copy was already there, and only its name and size were compared.",
  InUse:
    "The VMImage is being deleted, and a VM still refers to it. Its message says which, and what to do. Absent otherwise.",
} as const satisfies Meanings;

const reasonMeanings = {
  ...sharedReasonMeanings,
  Available: "The file is present wherever it is needed.",
  OnDemand: "Nothing needs the file yet. It is brought when a VM does.",
  NotListed: "No image file of this id is listed on the hypervisor.",
  Unreachable: "The hypervisor or its node does not answer, so nothing is known of the file.",
  Missing: "A file that was present is not there any more.",
  Downloading: "The file is being brought to a hypervisor.",
  ChecksumMismatch: "The file is not the one that the checksum names. It was thrown away.",
  AddressNotAllowed: "The URL leads to a private address that the Hypervisor does not allow.",
  VirtualMachinesRemain: "VirtualMachines refer to this VMImage. It is deleted after them.",
  FoundByName: "A file of this name and size was there already.",
} as const satisfies Meanings;

export const vmImageConditions: { readonly [K in keyof typeof conditionMeanings]: K } =
  wordsOf(conditionMeanings);
export const vmImageReasons: { readonly [K in keyof typeof reasonMeanings]: K } =
  wordsOf(reasonMeanings);

/** Images that machines start from. */
export const vmImageKind = defineKind({
  kind: "VMImage",
  plural: "vmimages",
  shortNames: ["vmimg"],
  namespaced: true,
  served: true,
  description:
    "A VMImage is what machines start from: a disk image or ISO by URL and checksum, a volume that a hypervisor already has, or a template.",
  spec: vmImageSpec,
  status,
  columns: [
    column("Format", ".spec.format", "The format of the file."),
    column("OS", ".spec.guestOs.name", "The distribution or edition."),
    { ...column("URL", ".spec.source.http.url", "Where the file comes from."), priority: 1 },
    conditionColumn("Ready", "Ready"),
    conditionColumn("Reason", "Ready", "reason"),
    ageColumn,
  ],
  conditions: { types: conditionMeanings, reasons: reasonMeanings },
});

export type VMImage = ObjectOf<typeof vmImageKind>;
export type WrittenVMImage = WrittenObjectOf<typeof vmImageKind>;
export type VMImageSpec = ReadOf<typeof vmImageSpec>;
export type VMImageStatus = ReadOf<typeof status>;
