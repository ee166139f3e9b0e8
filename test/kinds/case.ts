import type { KubeObject } from "../../src/kernel/object.ts";
import { edit } from "./edit.ts";
import type { Edits } from "./edit.ts";

/** One thing that somebody may write, and the sentence that they get if it is wrong. */
export interface Case {
  readonly name: string;
  readonly base: KubeObject;
  readonly edits: Edits;
  /** What stood before, as edits of the same base. Absent: the object is created. */
  readonly before?: Edits;
  /** The field and the words of the refusal. Absent: it is accepted. */
  readonly refused?: readonly [field: string, message: string];
}

/** The object of a case, and what stood before it. */
export function objectsOf(one: Case): { object: KubeObject; previous: KubeObject | undefined } {
  return {
    object: edit(one.base, one.edits),
    previous: one.before ? edit(one.base, one.before) : undefined,
  };
}

/** An object to start from. Without a namespace it belongs to the cluster. */
export function made(kind: string, spec: Edits, namespace?: string): KubeObject {
  const metadata = { name: "one", ...(namespace === undefined ? {} : { namespace }) };
  return { apiVersion: "berth.dev/v1alpha1", kind, metadata, spec };
}
