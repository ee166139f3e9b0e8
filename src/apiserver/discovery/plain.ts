import { createHash } from "node:crypto";
import { apiVersionOf } from "../../kernel/object.ts";
import { makeDocument, type Document } from "../documents/index.ts";
import type { DiscoveredGroup, DiscoveredResource, DiscoveredVersion } from "./discovered.ts";

/** The older form of discovery: a list of groups, and a list of resources for each version. */

/** GET /api: the versions of the core group. */
export function coreVersionsDocument(core: DiscoveredGroup | undefined): Document {
  return makeDocument({
    kind: "APIVersions",
    versions: core?.versions.map(({ version }) => version) ?? [],
    // Where else the server can be reached. It cannot know; clients keep to the address they used.
    serverAddressByClientCIDRs: [],
  });
}

/** GET /apis: all groups but the core. */
export function groupListDocument(groups: readonly DiscoveredGroup[]): Document {
  return makeDocument({ kind: "APIGroupList", apiVersion: "v1", groups: groups.map(groupEntry) });
}

/** GET /apis/GROUP. */
export function groupDocument(group: DiscoveredGroup): Document {
  return makeDocument({ kind: "APIGroup", apiVersion: "v1", ...groupEntry(group) });
}

/** GET /api/v1 and /apis/GROUP/VERSION. */
export function resourceListDocument(version: DiscoveredVersion): Document {
  const groupVersion = apiVersionOf(version.group, version.version);
  const resources = version.resources.flatMap(resourceEntries);
  return makeDocument({ kind: "APIResourceList", apiVersion: "v1", groupVersion, resources });
}

function groupEntry(group: DiscoveredGroup): object {
  const versions = group.versions.map(({ version }) => {
    return { groupVersion: apiVersionOf(group.group, version), version };
  });
  return { name: group.group, versions, preferredVersion: versions[0] };
}

function resourceEntries(resource: DiscoveredResource): object[] {
  const { plural, namespaced, shortNames, categories, kind } = resource;
  const entry = {
    name: plural,
    singularName: resource.singular,
    namespaced,
    kind,
    verbs: resource.verbs,
    ...(shortNames.length > 0 ? { shortNames } : {}),
    ...(categories.length > 0 ? { categories } : {}),
    ...(resource.stored ? { storageVersionHash: storageVersionHash(resource) } : {}),
  };
  return [entry, ...subresourceEntries(resource)];
}

function subresourceEntries(resource: DiscoveredResource): object[] {
  return resource.subresources.map(({ name, responseKind, verbs }) => {
    const { group, version, kind } = responseKind;
    // Absent, group and version are those of the list; a Scale belongs to another group.
    const foreign = group === resource.group ? {} : { group, version };
    return {
      name: `${resource.plural}/${name}`,
      singularName: "",
      namespaced: resource.namespaced,
      ...foreign,
      kind,
      verbs,
    };
  });
}

/** Tells migration tools whether the stored form changed. Kubernetes' own formula. */
function storageVersionHash({ group, version, kind }: DiscoveredResource): string {
  const digest = createHash("sha256").update(`${group}/${version}/${kind}`).digest();
  return digest.subarray(0, 8).toString("base64");
}
