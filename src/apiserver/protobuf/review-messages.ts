import { flag, int64, list, map, part, pointer, text, time, type Message } from "./message.ts";
import { metadata, selectorRequirement } from "./meta-messages.ts";

/** Messages of k8s.io/api authentication.k8s.io/v1 and authorization.k8s.io/v1. */

const userInfo: Message = {
  1: text("username"),
  2: text("uid"),
  3: list("groups", "text"),
  4: map("extra", "textList"),
};

export const selfSubjectReview: Message = {
  1: metadata,
  2: part("status", { 1: part("userInfo", userInfo) }),
};

const boundObjectReference: Message = {
  1: text("kind"),
  2: text("apiVersion"),
  3: text("name"),
  4: text("uid"),
};

export const tokenRequest: Message = {
  1: metadata,
  2: part("spec", {
    1: list("audiences", "text", "nullable"),
    4: int64("expirationSeconds", "nullable"),
    3: pointer("boundObjectRef", boundObjectReference, "nullable"),
  }),
  3: part("status", { 1: text("token", "always"), 2: time("expirationTimestamp") }),
};

const selector: Message = {
  1: text("rawSelector"),
  2: list("requirements", selectorRequirement),
};

const resourceAttributes: Message = {
  1: text("namespace"),
  2: text("verb"),
  3: text("group"),
  4: text("version"),
  5: text("resource"),
  6: text("subresource"),
  7: text("name"),
  8: pointer("fieldSelector", selector),
  9: pointer("labelSelector", selector),
};

export const selfSubjectAccessReview: Message = {
  1: metadata,
  2: part("spec", {
    1: pointer("resourceAttributes", resourceAttributes),
    2: pointer("nonResourceAttributes", { 1: text("path"), 2: text("verb") }),
  }),
  3: part("status", {
    1: flag("allowed", "always"),
    4: flag("denied"),
    2: text("reason"),
    3: text("evaluationError"),
  }),
};

const resourceRule: Message = {
  1: list("verbs", "text", "nullable"),
  2: list("apiGroups", "text"),
  3: list("resources", "text"),
  4: list("resourceNames", "text"),
};

const nonResourceRule: Message = {
  1: list("verbs", "text", "nullable"),
  2: list("nonResourceURLs", "text"),
};

export const selfSubjectRulesReview: Message = {
  1: metadata,
  2: part("spec", { 1: text("namespace") }),
  3: part("status", {
    1: list("resourceRules", resourceRule, "nullable"),
    2: list("nonResourceRules", nonResourceRule, "nullable"),
    3: flag("incomplete", "always"),
    4: text("evaluationError"),
  }),
};
