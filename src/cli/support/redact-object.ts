import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import { redact, redacted } from "../../kernel/redact.ts";

/** Kinds whose data may be anything: only how much there is of it is shown. */
const opaqueKinds: ReadonlySet<string> = new Set(["Secret", "ConfigMap"]);
const opaqueFields = ["data", "stringData", "binaryData"] as const;

/** Copies of whole objects, secrets included, that clients leave there. */
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";

/** Fields of ours that hold what a guest is given, and whatever else is named like a secret. */
const secretNames = /^(inline|passwordHash|password|token|tokenSecret|secret|privateKey|apiKey)$/i;

/** An object as it may be shown to a stranger who helps: names and shapes, no secrets. Pure. */
export function redactObject(object: JsonObject): JsonObject {
  const { metadata, ...rest } = object;
  const isOpaque = typeof object["kind"] === "string" && opaqueKinds.has(object["kind"]);
  const hidden = isOpaque ? opaqueFields.filter((field) => isJsonObject(rest[field])) : [];
  const sizes = hidden.map((field) => [field, sizesOf(rest[field])] as const);
  const shown = { ...redactFields(rest), ...Object.fromEntries(sizes) };
  return { ...shown, metadata: redactMetadata(metadata) };
}

function redactMetadata(metadata: Json | undefined): Json {
  if (!isJsonObject(metadata)) return {};
  const { managedFields: _noise, annotations, ...rest } = metadata;
  if (!isJsonObject(annotations)) return redactValue(rest);
  const { [lastApplied]: _copy, ...kept } = annotations;
  return redactValue({ ...rest, annotations: kept });
}

function sizesOf(data: Json | undefined): JsonObject {
  const entries = isJsonObject(data) ? Object.entries(data) : [];
  return Object.fromEntries(
    entries.map(([name, value]) => [
      name,
      `${redacted} (${JSON.stringify(value).length - 2} characters)`,
    ]),
  );
}

/** Fields without what is named or looks like a secret. */
export function redactFields(object: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => {
      const isSecret = typeof value === "string" && secretNames.test(name);
      return [name, isSecret ? redacted : redactValue(value)];
    }),
  );
}

function redactValue(value: Json): Json {
  if (typeof value === "string") return redact(value);
  if (Array.isArray(value)) return value.map(redactValue);
  return isJsonObject(value) ? redactFields(value) : value;
}
