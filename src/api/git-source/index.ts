import { ageColumn, column, conditionColumn, defineKind } from "../kind.ts";
import type { ObjectOf, WrittenObjectOf } from "../kind.ts";
import { conditions, observedGeneration } from "../parts/conditions.ts";
import { text, time } from "../parts/names.ts";
import { failure } from "../parts/progress.ts";
import { sharedConditionMeanings, sharedReasonMeanings, wordsOf } from "../reasons.ts";
import type { Meanings } from "../reasons.ts";
import { array, integer, object, optional } from "../schema/index.ts";
import type { ReadOf } from "../schema/index.ts";
import { gitSourceSpec } from "./spec.ts";

const problems = array(
  "Files that could not be read, decrypted, built or admitted. While there are any, nothing is pruned.",
  object("One problem.", {
    path: text("The file.", 512),
    object: optional(text("The object in it.", 320)),
    message: text("What is wrong.", 1024),
  }),
  { maxItems: 8 },
);

const status = object("What was applied.", {
  observedGeneration: optional(observedGeneration),
  fetchedRevision: optional(text("The newest commit that was read.", 128)),
  appliedRevision: optional(text("The commit that was last applied whole.", 128)),
  appliedAt: optional(time("When it was.")),
  objects: optional(integer("Objects that it keeps.", { minimum: 0, maximum: 1_000_000 })),
  problems: optional(problems),
  heldBack: optional(
    array(
      "Objects that would be deleted, but for prune.budgetPerHour.",
      text("An object, as kind/namespace/name.", 320),
      { maxItems: 16 },
    ),
  ),
  handledReconcileAt: optional(
    text("The last value of the annotation berth.dev/reconcile-at that was acted upon.", 128),
  ),
  failure: optional(failure),
  conditions: optional(conditions),
});

const conditionMeanings = {
  ...sharedConditionMeanings,
  Ready: "The newest commit was applied whole.",
  Fetched: "The repository could be read.",
  PruneHeld: "Deletions are held back: they are more than the budget, or a file is broken.",
} as const satisfies Meanings;

const reasonMeanings = {
  ...sharedReasonMeanings,
  Applied: "The newest commit was applied whole.",
  FetchFailed: "The repository could not be read.",
  CredentialsNotRenewed: "The url changed: write the Secret anew or name another.",
  FilesBroken: "A file could not be read, decrypted, built or admitted: see status.problems.",
  SignatureInvalid: "The commit is not signed by a key that is trusted.",
  BudgetExceeded: "More objects are gone from the repository than may be deleted in an hour.",
} as const satisfies Meanings;

export const gitSourceConditions: { readonly [K in keyof typeof conditionMeanings]: K } =
  wordsOf(conditionMeanings);
export const gitSourceReasons: { readonly [K in keyof typeof reasonMeanings]: K } =
  wordsOf(reasonMeanings);

/** Repositories that are kept applied. */
export const gitSourceKind = defineKind({
  kind: "GitSource",
  plural: "gitsources",
  shortNames: ["gitsrc"],
  namespaced: true,
  served: false,
  description:
    "A GitSource keeps the manifests of a directory in a Git repository applied, with the rights of a service account, and deletes what is gone from it within a budget.",
  spec: gitSourceSpec,
  status,
  columns: [
    column("URL", ".spec.url", "The repository."),
    column("Path", ".spec.path", "The directory in it."),
    column("Revision", ".status.appliedRevision", "The commit that was last applied."),
    conditionColumn("Ready", "Ready"),
    conditionColumn("Reason", "Ready", "reason"),
    ageColumn,
  ],
  conditions: { types: conditionMeanings, reasons: reasonMeanings },
});

export type GitSource = ObjectOf<typeof gitSourceKind>;
export type WrittenGitSource = WrittenObjectOf<typeof gitSourceKind>;
export type GitSourceSpec = ReadOf<typeof gitSourceSpec>;
export type GitSourceStatus = ReadOf<typeof status>;
