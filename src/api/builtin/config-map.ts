import type { Json } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { FieldError } from "../../kernel/status.ts";
import type { Resource } from "../resource.ts";
import { base64Bytes } from "./base64.ts";
import { canonicalBase64, dataEntries, emptyForNull, immutableErrors } from "./data-keys.ts";
import { keyErrors, sizeErrors } from "./data-keys.ts";
import { age, ageColumn, invalidField, metadataMergeKeys, withoutNulls } from "./native.ts";
import { flag, struct, textMap } from "./schema-parts.ts";

const description = "Configuration as keys and values, for whoever reads it. Not for secrets.";

export const configMapResource: Resource = {
  group: "",
  version: "v1",
  kind: "ConfigMap",
  plural: "configmaps",
  singular: "configmap",
  shortNames: ["cm"],
  categories: [],
  namespaced: true,
  description,
  schema: struct(description, {
    immutable: flag("True freezes the data: it can then only be deleted, never changed."),
    data: textMap(
      "The data as text. Keys consist of letters, digits, '-', '_' and '.'; all values together " +
        "are at most 1 MiB.",
    ),
    binaryData: textMap(
      "Data that is not UTF-8 text, base64. No key may be both here and in data.",
      { format: "byte" },
    ),
  }),
  subresources: {},
  columns: [
    { name: "Data", type: "string", jsonPath: ".data", description: "How many keys it has." },
    ageColumn,
  ],
  served: true,
  native: {
    cells: (object, nowMs): Json[] => [keyCount(object), age(object, nowMs)],
    prepare: prepareConfigMap,
    validate: validateConfigMap,
    mergeKeys: metadataMergeKeys,
  },
};

function keyCount(object: KubeObject): number {
  return dataEntries(object, "data").length + dataEntries(object, "binaryData").length;
}

function prepareConfigMap(object: KubeObject): KubeObject {
  const read: KubeObject = { ...object };
  if (object.data !== undefined) read.data = emptyForNull(object.data);
  if (object.binaryData !== undefined) {
    read.binaryData = canonicalBase64("ConfigMap", object.binaryData);
  }
  return withoutNulls(read);
}

function validateConfigMap(object: KubeObject, previous: KubeObject | undefined): FieldError[] {
  const texts = dataEntries(object, "data");
  const binaries = dataEntries(object, "binaryData");
  const sizes = [
    ...texts.map(([, value]) => Buffer.byteLength(value, "utf8")),
    ...binaries.map(([, value]) => base64Bytes(value)),
  ];
  return [
    ...immutableErrors(object, previous, ["data", "binaryData"]),
    ...keyErrors(object, "data"),
    ...overlapErrors(texts, binaries),
    ...keyErrors(object, "binaryData"),
    // Kubernetes blames no field for the size of the whole, and prints that as "[]".
    ...sizeErrors(
      "[]",
      sizes.reduce((sum, size) => sum + size, 0),
    ),
  ];
}

function overlapErrors(texts: [string, string][], binaries: [string, string][]): FieldError[] {
  const binaryKeys = new Set(binaries.map(([key]) => key));
  const doubled = texts.filter(([key]) => binaryKeys.has(key));
  const detail = "duplicate of key present in binaryData";
  return doubled.map(([key]) => invalidField(`data[${key}]`, key, detail));
}
