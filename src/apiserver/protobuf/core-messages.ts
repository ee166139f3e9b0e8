import { flag, int32, list, map, microTime, part, pointer } from "./message.ts";
import { text, time, type Message } from "./message.ts";
import { metadata } from "./meta-messages.ts";

/** Messages of k8s.io/api core/v1, events.k8s.io/v1 and coordination.k8s.io/v1. */

const objectReference: Message = {
  1: text("kind"),
  2: text("namespace"),
  3: text("name"),
  4: text("uid"),
  5: text("apiVersion"),
  6: text("resourceVersion"),
  7: text("fieldPath"),
};

const namespaceCondition: Message = {
  1: text("type", "always"),
  2: text("status", "always"),
  4: time("lastTransitionTime"),
  5: text("reason"),
  6: text("message"),
};

export const namespace: Message = {
  1: metadata,
  2: part("spec", { 1: list("finalizers", "text") }),
  3: part("status", { 1: text("phase"), 2: list("conditions", namespaceCondition) }),
};

export const configMap: Message = {
  1: metadata,
  4: flag("immutable", "present"),
  2: map("data", "text"),
  3: map("binaryData", "bytes"),
};

export const secret: Message = {
  1: metadata,
  5: flag("immutable", "present"),
  2: map("data", "bytes"),
  4: map("stringData", "text"),
  3: text("type"),
};

export const serviceAccount: Message = {
  1: metadata,
  2: list("secrets", objectReference),
  3: list("imagePullSecrets", { 1: text("name") }),
  4: flag("automountServiceAccountToken", "present"),
};

const eventSource: Message = { 1: text("component"), 2: text("host") };

export const event: Message = {
  1: metadata,
  2: part("involvedObject", objectReference),
  3: text("reason"),
  4: text("message"),
  5: part("source", eventSource),
  6: time("firstTimestamp"),
  7: time("lastTimestamp"),
  8: int32("count"),
  9: text("type"),
  10: microTime("eventTime"),
  11: pointer("series", { 1: int32("count"), 2: microTime("lastObservedTime") }),
  12: text("action"),
  13: pointer("related", objectReference),
  14: text("reportingComponent", "always"),
  15: text("reportingInstance", "always"),
};

/** The same in other words: events.k8s.io/v1. */
export const newerEvent: Message = {
  1: metadata,
  2: microTime("eventTime"),
  3: pointer("series", { 1: int32("count", "always"), 2: microTime("lastObservedTime") }),
  4: text("reportingController"),
  5: text("reportingInstance"),
  6: text("action"),
  7: text("reason"),
  8: part("regarding", objectReference),
  9: pointer("related", objectReference),
  10: text("note"),
  11: text("type"),
  12: part("deprecatedSource", eventSource),
  13: time("deprecatedFirstTimestamp"),
  14: time("deprecatedLastTimestamp"),
  15: int32("deprecatedCount"),
};

export const lease: Message = {
  1: metadata,
  2: part("spec", {
    1: text("holderIdentity", "present"),
    2: int32("leaseDurationSeconds", "present"),
    3: microTime("acquireTime", "present"),
    4: microTime("renewTime", "present"),
    5: int32("leaseTransitions", "present"),
    6: text("strategy", "present"),
    7: text("preferredHolder", "present"),
  }),
};
