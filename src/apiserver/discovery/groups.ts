import type { Resource } from "../../api/resource.ts";
import type { Catalogue, Verb } from "../contract.ts";
import type { DiscoveredGroup, DiscoveredResource, DiscoveredSubresource } from "./discovered.ts";
import { virtualResources } from "./virtual-resources.ts";

const objectVerbs: readonly Verb[] = [
  "create",
  "delete",
  "deletecollection",
  "get",
  "list",
  "patch",
  "update",
  "watch",
];
const subresourceVerbs: readonly Verb[] = ["get", "patch", "update"];
const scaleKind = { group: "autoscaling", version: "v1", kind: "Scale" };

/**
 * Groups, versions and resources in the order of the catalogue, the core group first. The order
 * counts: where two groups have a resource of one name, kubectl takes the first.
 */
export function discoveredGroups(catalogue: Catalogue): DiscoveredGroup[] {
  const served = catalogue.all().map(discoveredResource);
  const groups = Map.groupBy([...served, ...virtualResources], (resource) => resource.group);
  const named = [...groups].map(([group, resources]) => discoveredGroup(group, resources));
  return named.sort((left, right) => Number(right.group === "") - Number(left.group === ""));
}

function discoveredGroup(group: string, resources: DiscoveredResource[]): DiscoveredGroup {
  const versions = Map.groupBy(resources, (resource) => resource.version);
  return {
    group,
    versions: [...versions].map(([version, members]) => ({ group, version, resources: members })),
  };
}

function discoveredResource(resource: Resource): DiscoveredResource {
  const { group, version, kind, plural, singular, namespaced, shortNames, categories } = resource;
  return {
    group,
    version,
    kind,
    plural,
    singular,
    namespaced,
    shortNames,
    categories,
    verbs: verbsOf(resource),
    subresources: subresourcesOf(resource),
    stored: true,
  };
}

/** Namespaces go one by one: `kubectl delete ns --all` must not be a single request. */
function verbsOf(resource: Resource): readonly Verb[] {
  const isNamespace = resource.group === "" && resource.plural === "namespaces";
  return isNamespace ? objectVerbs.filter((verb) => verb !== "deletecollection") : objectVerbs;
}

function subresourcesOf(resource: Resource): DiscoveredSubresource[] {
  const { group, version, kind, subresources } = resource;
  const found: DiscoveredSubresource[] = [];
  if (subresources.scale) {
    found.push({ name: "scale", responseKind: scaleKind, verbs: subresourceVerbs });
  }
  if (subresources.status) {
    const responseKind = { group, version, kind };
    found.push({ name: "status", responseKind, verbs: subresourceVerbs });
  }
  return found;
}
