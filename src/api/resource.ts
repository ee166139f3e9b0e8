import type { Json } from "../kernel/json.ts";
import type { KubeObject } from "../kernel/object.ts";
import type { FieldError } from "../kernel/status.ts";
import type { JsonSchema } from "./schema/json-schema.ts";

/**
 * One kind of object as the API serves it. Our kinds, the built-in ones and (later) users' CRDs all
 * become one of these, and everything that serves, checks, prints or documents an object reads it.
 */
export interface Resource {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  /** "berth" for ours, so that `kubectl get berth` shows them all. */
  readonly categories: readonly string[];
  readonly namespaced: boolean;
  /** One paragraph: what the kind declares. Shown by `kubectl explain` and on its page. */
  readonly description: string;
  /** The whole object: `spec`, `status` and so on. apiVersion, kind and metadata are implied. */
  readonly schema: JsonSchema;
  readonly subresources: {
    readonly status?: boolean;
    readonly scale?: ScaleSubresource;
  };
  /** Beside NAME, which every table has. */
  readonly columns: readonly Column[];
  /** Served in this build, or only with `--serve-all` because its controller is still to come. */
  readonly served: boolean;
  /** What the built-in kinds have beyond a CRD. Absent for ours: both homes must agree on them. */
  readonly native?: NativeBehaviour;
}

/** JSON paths as in a CRD: ".spec.replicas". */
export interface ScaleSubresource {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  readonly labelSelectorPath?: string;
}

/** A printer column as in a CRD. */
export interface Column {
  readonly name: string;
  readonly type: "string" | "integer" | "number" | "boolean" | "date";
  readonly jsonPath: string;
  readonly description: string;
  readonly format?: string;
  /** 0 is always shown, more only with `-o wide`. */
  readonly priority?: number;
}

/** Hooks of a built-in kind. All are pure. */
export interface NativeBehaviour {
  /** Cells of a table row beside the name, in the order of `columns`, where a JSON path cannot. */
  readonly cells?: (object: KubeObject, nowMs: number) => Json[];
  /** Runs on create and update after decoding: a Secret's stringData becomes data. */
  readonly prepare?: (object: KubeObject, previous: KubeObject | undefined) => KubeObject;
  /** What the schema cannot say: an immutable Secret, a Lease's times. */
  readonly validate?: (object: KubeObject, previous: KubeObject | undefined) => FieldError[];
  /** Strategic merge: "metadata.ownerReferences" → merge key "uid"; "" for sets of scalars. */
  readonly mergeKeys: Readonly<Record<string, string>>;
}
