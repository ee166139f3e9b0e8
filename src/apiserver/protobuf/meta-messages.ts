import { flag, int64, list, map, part, pointer, text, time, type Message } from "./message.ts";

/** Messages of k8s.io/apimachinery/pkg/apis/meta/v1. */

const ownerReference: Message = {
  5: text("apiVersion", "always"),
  1: text("kind", "always"),
  3: text("name", "always"),
  4: text("uid", "always"),
  6: flag("controller", "present"),
  7: flag("blockOwnerDeletion", "present"),
};

const managedFieldsEntry: Message = {
  1: text("manager"),
  2: text("operation"),
  3: text("apiVersion"),
  4: time("time", "present"),
  6: text("fieldsType"),
  7: pointer("fieldsV1", "fieldsV1"),
  8: text("subresource"),
};

const objectMeta: Message = {
  1: text("name"),
  2: text("generateName"),
  3: text("namespace"),
  4: text("selfLink"),
  5: text("uid"),
  6: text("resourceVersion"),
  7: int64("generation"),
  8: time("creationTimestamp"),
  9: time("deletionTimestamp", "present"),
  10: int64("deletionGracePeriodSeconds", "present"),
  11: map("labels", "text"),
  12: map("annotations", "text"),
  13: list("ownerReferences", ownerReference),
  14: list("finalizers", "text"),
  17: list("managedFields", managedFieldsEntry),
};

export const metadata = part("metadata", objectMeta);

export const deleteOptions: Message = {
  1: int64("gracePeriodSeconds", "present"),
  2: pointer("preconditions", {
    1: text("uid", "present"),
    2: text("resourceVersion", "present"),
  }),
  3: flag("orphanDependents", "present"),
  4: text("propagationPolicy", "present"),
  5: list("dryRun", "text"),
  6: flag("ignoreStoreReadErrorWithClusterBreakingPotential", "present"),
};

/** A requirement of a label or field selector. */
export const selectorRequirement: Message = {
  1: text("key", "always"),
  2: text("operator", "always"),
  3: list("values", "text"),
};
