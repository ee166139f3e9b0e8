import type { Json } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";

import type { Resource } from "../resource.ts";
import { age, ageColumn, metadataMergeKeys } from "./native.ts";
import { structAt, textAt, withoutNulls } from "./native.ts";
import { keyedList, struct, text, textList, time } from "./schema-parts.ts";

/** Selectors over namespaces rely on it: a namespace always carries its own name as a label. */
const nameLabel = "kubernetes.io/metadata.name";

const conditionSchema = struct(
  "One observation about a namespace that is going away.",
  {
    type: text("What is observed, such as NamespaceContentRemaining."),
    status: text("True, False or Unknown."),
    lastTransitionTime: time("When the status last changed."),
    reason: text("Why, as one CamelCase word."),
    message: text("Why, as a sentence for people."),
  },
  { required: ["type", "status"] },
);

export const namespaceResource: Resource = {
  group: "",
  version: "v1",
  kind: "Namespace",
  plural: "namespaces",
  singular: "namespace",
  shortNames: ["ns"],
  categories: [],
  namespaced: false,
  description: "A space for names: objects in two namespaces may be called alike.",
  schema: struct("A space for names: objects in two namespaces may be called alike.", {
    spec: struct("What is wanted of the namespace.", {
      finalizers: textList("What has to be done before the namespace is removed for good."),
    }),
    status: struct("What is observed of the namespace.", {
      phase: text("Active, or Terminating while its content is being deleted."),
      conditions: keyedList("What is known about the deletion.", "type", conditionSchema),
    }),
  }),
  subresources: { status: true },
  columns: [
    {
      name: "Status",
      type: "string",
      jsonPath: ".status.phase",
      description: "Active or Terminating.",
    },
    ageColumn,
  ],
  served: true,
  native: {
    cells: (object, nowMs): Json[] => {
      return [textAt(structAt(object, "status"), "phase"), age(object, nowMs)];
    },
    prepare: prepareNamespace,
    mergeKeys: { ...metadataMergeKeys, "status.conditions": "type" },
  },
};

function prepareNamespace(object: KubeObject): KubeObject {
  const cleaned = withoutNulls(object);
  const { name, labels } = cleaned.metadata;
  const phase = object.metadata.deletionTimestamp ? "Terminating" : "Active";
  const status = { ...structAt(cleaned, "status"), phase };
  const labelled = name ? { labels: { ...labels, [nameLabel]: name } } : {};
  return { ...cleaned, metadata: { ...cleaned.metadata, ...labelled }, status };
}
