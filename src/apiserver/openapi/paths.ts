import type { Resource } from "../../api/resource.ts";
import { allNamespacesOperations, collectionOperations } from "./operations.ts";
import { objectOperations, scaleOperations, statusOperations } from "./operations.ts";
import { nameParameter, namespaceParameter, type Parameter } from "./parameters.ts";

/** The paths of some resources, with what can be done there. */
export function documentPaths(resources: readonly Resource[]): Record<string, object> {
  return Object.fromEntries(resources.flatMap(resourcePaths));
}

function resourcePaths(resource: Resource): [string, object][] {
  const { group, version, plural, namespaced, subresources } = resource;
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const scope: Parameter[] = namespaced ? [namespaceParameter] : [];
  const collection = namespaced ? `${root}/namespaces/{namespace}/${plural}` : `${root}/${plural}`;
  const object = `${collection}/{name}`;
  const named = [...scope, nameParameter];
  const paths: [string, object][] = [
    [collection, { ...collectionOperations(resource), parameters: scope }],
    [object, { ...objectOperations(resource), parameters: named }],
  ];
  if (namespaced) paths.push([`${root}/${plural}`, allNamespacesOperations(resource)]);
  if (subresources.status) {
    paths.push([`${object}/status`, { ...statusOperations(resource), parameters: named }]);
  }
  if (subresources.scale) {
    paths.push([`${object}/scale`, { ...scaleOperations(resource), parameters: named }]);
  }
  return paths;
}
