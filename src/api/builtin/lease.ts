import type { Json } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { FieldError } from "../../kernel/status.ts";
import type { Resource } from "../resource.ts";
import { age, ageColumn, forbiddenField, invalidField, metadataMergeKeys } from "./native.ts";
import { numberAt, structAt, textAt, withoutNulls } from "./native.ts";
import { int32, struct, text, time } from "./schema-parts.ts";

const description =
  "Who holds something that only one may hold at a time, until when. Leader election and " +
  "heartbeats are kept in Leases.";

export const leaseResource: Resource = {
  group: "coordination.k8s.io",
  version: "v1",
  kind: "Lease",
  plural: "leases",
  singular: "lease",
  shortNames: [],
  categories: [],
  namespaced: true,
  description,
  schema: struct(description, {
    spec: struct("Who holds it and until when.", {
      holderIdentity: text("Who holds the lease now."),
      leaseDurationSeconds: int32("How long after renewTime others must wait before they take it."),
      acquireTime: time("When the holder got it."),
      renewTime: time("When the holder last renewed it."),
      leaseTransitions: int32("How often it went from one holder to another."),
      strategy: text("How the holder is chosen in coordinated leader election."),
      preferredHolder: text("To whom the holder should hand it over."),
    }),
  }),
  subresources: {},
  columns: [
    {
      name: "Holder",
      type: "string",
      jsonPath: ".spec.holderIdentity",
      description: "Who holds it.",
    },
    ageColumn,
  ],
  served: true,
  native: {
    cells: (object, nowMs): Json[] => {
      return [textAt(structAt(object, "spec"), "holderIdentity"), age(object, nowMs)];
    },
    prepare: withoutNulls,
    validate: validateLease,
    mergeKeys: metadataMergeKeys,
  },
};

function validateLease(object: KubeObject): FieldError[] {
  const spec = structAt(object, "spec");
  const errors: FieldError[] = [];
  const duration = numberAt(spec, "leaseDurationSeconds");
  if (duration !== undefined && duration <= 0) {
    errors.push(invalidField("spec.leaseDurationSeconds", duration, "must be greater than 0"));
  }
  const transitions = numberAt(spec, "leaseTransitions");
  if (transitions !== undefined && transitions < 0) {
    const detail = "must be greater than or equal to 0";
    errors.push(invalidField("spec.leaseTransitions", transitions, detail));
  }
  if (textAt(spec, "preferredHolder") !== "" && textAt(spec, "strategy") === "") {
    const detail = "may only be specified if `strategy` is defined";
    errors.push(forbiddenField("spec.preferredHolder", detail));
  }
  return errors;
}
