import type { Resource } from "../api/resource.ts";
import type { KubeObject } from "../kernel/object.ts";

/**
 * A resource that carries the types of its objects: as they are read, with defaults filled in, and
 * as they may be written. Our kinds are such; a plain Resource is one of untyped objects.
 */
export interface Kind<Read extends KubeObject = KubeObject, Written = Read> extends KindRoute {
  /** Never set. It carries the types through the compiler. */
  readonly types?: { readonly read: Read; readonly written: Written };
}

/** What of a resource a client needs to know. */
export type KindRoute = Pick<Resource, "group" | "version" | "kind" | "plural" | "namespaced">;

/** Which object. The namespace is absent for cluster-wide kinds. */
export interface ObjectName {
  readonly namespace?: string;
  readonly name: string;
}
