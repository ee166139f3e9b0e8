import type { Json } from "../../kernel/json.ts";
import type { Resource } from "../resource.ts";
import { age, ageColumn, metadataMergeKeys, withoutNulls } from "./native.ts";
import { objectReference } from "./object-reference.ts";
import { flag, keyedList, struct, text } from "./schema-parts.ts";

const description = "An identity for programs: what acts in its name has its rights.";

export const serviceAccountResource: Resource = {
  group: "",
  version: "v1",
  kind: "ServiceAccount",
  plural: "serviceaccounts",
  singular: "serviceaccount",
  shortNames: ["sa"],
  categories: [],
  namespaced: true,
  description,
  schema: struct(description, {
    secrets: keyedList(
      "Secrets of the same namespace that belong to this account.",
      "name",
      objectReference("A Secret, by name."),
    ),
    imagePullSecrets: {
      description: "Secrets for pulling images in the name of this account.",
      type: "array",
      items: struct(
        "A Secret of the same namespace.",
        { name: text("The name of the Secret.", { default: "" }) },
        { "x-kubernetes-map-type": "atomic" },
      ),
      "x-kubernetes-list-type": "atomic",
    },
    automountServiceAccountToken: flag("Whether pods of this account get its token by default."),
  }),
  subresources: {},
  columns: [
    { name: "Secrets", type: "string", jsonPath: ".secrets", description: "How many it names." },
    ageColumn,
  ],
  served: true,
  native: {
    cells: (object, nowMs): Json[] => {
      const secrets = Array.isArray(object.secrets) ? object.secrets.length : 0;
      return [secrets, age(object, nowMs)];
    },
    prepare: withoutNulls,
    mergeKeys: { ...metadataMergeKeys, secrets: "name" },
  },
};
