import type { DiscoveredResource } from "./discovered.ts";

/**
 * Questions in the form of resources: a client creates one and reads the answer from what comes
 * back; nothing is stored. They are no part of the catalogue, because none of its handlers apply.
 */
export const virtualResources: readonly DiscoveredResource[] = [
  review("authentication.k8s.io", "SelfSubjectReview"),
  review("authorization.k8s.io", "SelfSubjectAccessReview"),
  review("authorization.k8s.io", "SelfSubjectRulesReview"),
];

function review(group: string, kind: string): DiscoveredResource {
  const singular = kind.toLowerCase();
  return {
    group,
    version: "v1",
    kind,
    singular,
    plural: `${singular}s`,
    namespaced: false,
    verbs: ["create"],
    shortNames: [],
    categories: [],
    subresources: [],
    stored: false,
  };
}
