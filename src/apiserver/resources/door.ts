import { assert } from "../../kernel/assert.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { ResourceRequest, SchemaRunner } from "../contract.ts";
import { expectedKind, settle } from "./admit.ts";
import type { ExpectedKind } from "./decode.ts";
import { fromScale, readScale, scaleKind, settleScale, toScale } from "./scale.ts";

/**
 * Through what an object is read and changed: itself, its status, or its Scale. Update and patch
 * are the same for all; a door only says what a client sees of the object, and what becomes of the
 * object when the client sends that back changed.
 */
export interface Door {
  readonly expected: ExpectedKind;
  /** What a GET answers with. */
  readonly read: (object: KubeObject) => KubeObject;
  /** What a patch is applied to, and a change answered with. */
  readonly show: (object: KubeObject) => KubeObject;
  readonly enter: (sent: KubeObject, current: KubeObject) => KubeObject;
  /** Settles what was sent: see `settle`. */
  readonly settle: (sent: KubeObject, strictness: Parameters<typeof settle>[2]) => string[];
}

export function doorOf(request: ResourceRequest, runner: SchemaRunner): Door {
  const { resource, subresource } = request;
  if (subresource !== "scale") {
    return {
      expected: expectedKind(resource),
      read: (object) => object,
      show: (object) => object,
      enter: (sent) => sent,
      settle: (sent, strictness) => settle(sent, runner, strictness),
    };
  }
  const { scale } = resource.subresources;
  assert(scale, "only a kind that scales is asked for its scale");
  return {
    expected: scaleKind,
    read: (object) => readScale(object, scale),
    show: (object) => toScale(object, scale),
    enter: (sent, current) => fromScale(sent, current, scale),
    settle: settleScale,
  };
}
