import type { Resource } from "../api/resource.ts";
import { assert } from "../kernel/assert.ts";
import type { Catalogue } from "./contract.ts";

/**
 * The kinds that this server serves: those whose controller is in this build, or all of them with
 * `serveAll`. Fixed for now; when users' CRDs come, this is where they are added and the
 * generation moves.
 */
export function createCatalogue(
  resources: readonly Resource[],
  options: { readonly serveAll?: boolean } = {},
): Catalogue {
  const served = resources.filter((resource) => resource.served || options.serveAll === true);
  const byPlural = Map.groupBy(served, (resource) => resource.plural);
  const byKind = Map.groupBy(served, (resource) => resource.kind);
  assertUnique(byPlural);
  assertUnique(byKind);
  return {
    all: () => served,
    // Asked on every request. A name is hardly ever served by two groups, so the list is short.
    find: (group, version, plural) => select(byPlural.get(plural), group, version),
    findKind: (group, version, kind) => select(byKind.get(kind), group, version),
    generation: () => 1,
  };
}

function select(
  candidates: readonly Resource[] | undefined,
  group: string,
  version: string,
): Resource | undefined {
  return candidates?.find((resource) => resource.group === group && resource.version === version);
}

function assertUnique(index: ReadonlyMap<string, readonly Resource[]>): void {
  for (const [name, candidates] of index) {
    const places = new Set(candidates.map((resource) => `${resource.group}/${resource.version}`));
    assert(places.size === candidates.length, `the catalogue has ${name} only once in a version`);
  }
}
