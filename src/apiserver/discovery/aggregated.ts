import { makeDocument, type Document } from "../documents/index.ts";
import type { DiscoveredGroup, DiscoveredResource, DiscoveredVersion } from "./discovered.ts";

/** The versions of the aggregated form, equal in content. kubectl below 1.30 knows only v2beta1. */
export type AggregatedVersion = "v2" | "v2beta1";

/** The media type under which a client asks for it, and must be answered word for word. */
function aggregatedType(version: AggregatedVersion): string {
  return `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`;
}

/** Everything at once: all groups, versions and resources in one document. */
export function aggregatedDocument(
  groups: readonly DiscoveredGroup[],
  version: AggregatedVersion,
): Document {
  const list = {
    kind: "APIGroupDiscoveryList",
    apiVersion: `apidiscovery.k8s.io/${version}`,
    metadata: {},
    items: groups.map(groupItem),
  };
  return makeDocument(list, aggregatedType(version));
}

function groupItem(group: DiscoveredGroup): object {
  const name = group.group === "" ? {} : { name: group.group };
  return {
    metadata: { ...name, creationTimestamp: null },
    versions: group.versions.map(versionItem),
  };
}

function versionItem(version: DiscoveredVersion): object {
  return {
    version: version.version,
    resources: version.resources.map(resourceItem),
    freshness: "Current",
  };
}

function resourceItem(resource: DiscoveredResource): object {
  const { group, version, kind, shortNames, categories, subresources } = resource;
  const items = subresources.map(({ name, responseKind, verbs }) => {
    return { subresource: name, responseKind, verbs };
  });
  return {
    resource: resource.plural,
    responseKind: { group, version, kind },
    scope: resource.namespaced ? "Namespaced" : "Cluster",
    singularResource: resource.singular,
    verbs: resource.verbs,
    ...(shortNames.length > 0 ? { shortNames } : {}),
    ...(categories.length > 0 ? { categories } : {}),
    ...(items.length > 0 ? { subresources: items } : {}),
  };
}
