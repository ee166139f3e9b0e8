import { isJsonObject, type Json } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import type { FieldError } from "../../kernel/status.ts";
import type { Resource } from "../resource.ts";
import { base64Bytes } from "./base64.ts";
import { canonicalBase64, dataEntries, emptyForNull, immutableErrors } from "./data-keys.ts";
import { keyErrors, sizeErrors } from "./data-keys.ts";
import { age, ageColumn, invalidField, metadataMergeKeys, textAt, withoutNulls } from "./native.ts";
import { flag, struct, text, textMap } from "./schema-parts.ts";
import { secretTypeErrors } from "./secret-types.ts";

const description =
  "Data that must not be seen: passwords, tokens, keys. It is encrypted where it is stored.";

export const secretResource: Resource = {
  group: "",
  version: "v1",
  kind: "Secret",
  plural: "secrets",
  singular: "secret",
  shortNames: [],
  categories: [],
  namespaced: true,
  description,
  schema: struct(description, {
    type: text("What kind of data it is; some types demand certain keys. Opaque by default."),
    immutable: flag("True freezes the data: it can then only be deleted, never changed."),
    data: textMap(
      "The data, base64. Keys consist of letters, digits, '-', '_' and '.'; all values together " +
        "are at most 1 MiB.",
      { format: "byte" },
    ),
    stringData: textMap(
      "The same as plain text, for convenience in writing. It is merged into data and never shown.",
    ),
  }),
  subresources: {},
  columns: [
    { name: "Type", type: "string", jsonPath: ".type", description: "What kind of data it is." },
    { name: "Data", type: "string", jsonPath: ".data", description: "How many keys it has." },
    ageColumn,
  ],
  served: true,
  native: {
    cells: (object, nowMs): Json[] => {
      return [textAt(object, "type"), dataEntries(object, "data").length, age(object, nowMs)];
    },
    prepare: prepareSecret,
    validate: validateSecret,
    mergeKeys: metadataMergeKeys,
  },
};

function prepareSecret(object: KubeObject): KubeObject {
  const { data, stringData, ...rest } = object;
  const kept = withoutNulls(rest);
  const type = kept.type === undefined || kept.type === "" ? "Opaque" : kept.type;
  return { ...kept, type, ...mergedData(canonicalBase64("Secret", data), stringData) };
}

/** What was written as plain text joins the data, and goes before what was written there. */
function mergedData(data: unknown, stringData: unknown): Record<string, unknown> {
  const kept = data === undefined || data === null ? {} : { data };
  const texts = emptyForNull(stringData) ?? {};
  // What has the wrong shape stays as it is, for the schema to refuse.
  if (!isTextMap(texts) || !isJsonObject(data ?? {})) return { ...kept, stringData };
  const encoded = Object.entries(texts).map(([key, value]) => {
    return [key, Buffer.from(value, "utf8").toString("base64")];
  });
  if (encoded.length === 0) return kept;
  return { data: { ...(isJsonObject(data) ? data : {}), ...Object.fromEntries(encoded) } };
}

function isTextMap(value: unknown): value is Record<string, string> {
  return isJsonObject(value) && Object.values(value).every((item) => typeof item === "string");
}

function validateSecret(object: KubeObject, previous: KubeObject | undefined): FieldError[] {
  const sizes = dataEntries(object, "data").map(([, value]) => base64Bytes(value));
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  return [
    ...typeChangeErrors(object, previous),
    ...immutableErrors(object, previous, ["data"]),
    ...keyErrors(object, "data"),
    ...sizeErrors("data", bytes),
    ...secretTypeErrors(object),
  ];
}

/** The type decided which keys are demanded, so what reads the Secret relies on it. */
function typeChangeErrors(object: KubeObject, previous: KubeObject | undefined): FieldError[] {
  if (previous === undefined || previous.type === object.type) return [];
  return [invalidField("type", object.type, "field is immutable")];
}
