import type { Verb } from "../contract.ts";

/** What there is to discover, before it takes one of the forms in which clients ask for it. */
export interface DiscoveredGroup {
  readonly group: string;
  /** The first one is preferred. */
  readonly versions: readonly DiscoveredVersion[];
}

export interface DiscoveredVersion {
  readonly group: string;
  readonly version: string;
  readonly resources: readonly DiscoveredResource[];
}

export interface DiscoveredResource {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly namespaced: boolean;
  readonly verbs: readonly Verb[];
  readonly shortNames: readonly string[];
  readonly categories: readonly string[];
  readonly subresources: readonly DiscoveredSubresource[];
  /** Kept in the store, and not only answered. */
  readonly stored: boolean;
}

export interface DiscoveredSubresource {
  readonly name: string;
  /** What the subresource is: the object itself, or a Scale. */
  readonly responseKind: {
    readonly group: string;
    readonly version: string;
    readonly kind: string;
  };
  readonly verbs: readonly Verb[];
}
