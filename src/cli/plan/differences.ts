import { createHash } from "node:crypto";
import { isJsonObject, type Json, type JsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { lastApplied } from "../objects/three-way.ts";
import { redactFields } from "../support/redact-object.ts";

/** What is shown of a value that not everybody should read. */
const notShown = "(not shown)";
const textMax = 256;

/** Of the metadata, what people write. The rest is kept by the server. */
const writtenMetadata = ["labels", "annotations", "finalizers", "ownerReferences"] as const;
const keptByServer: ReadonlySet<string> = new Set(["apiVersion", "kind", "metadata", "status"]);

/** Of a Secret, the only fields whose values tell nothing of what it holds. */
const openInSecrets = /^(type|immutable|metadata\.labels\b.*)$/;
/** What a map of names holds may be anything, and cloud-init is told passwords and keys. */
const hiddenFields = /^(data|binaryData|stringData)\b|\.cloudInit\b/;
/** Maps whose keys are names that people choose. */
const mapsOfNames = /^(data|binaryData|stringData|metadata\.labels|metadata\.annotations)$/;

/** A plan of these changes, by a hash that names what is shown of them. */
export function planOf(changes: readonly JsonObject[]): JsonObject {
  const hash = createHash("sha256").update(JSON.stringify(changes)).digest("hex").slice(0, 16);
  return { hash, changes: [...changes] };
}

/** All that people wrote and that differs. What a change costs is not said here. */
export function objectDifferences(before: KubeObject, after: KubeObject): JsonObject[] {
  const fields = new Set([...Object.keys(before), ...Object.keys(after)]);
  const written = [...fields].filter((field) => !keptByServer.has(field)).toSorted();
  return [
    ...metadataDifferences(before, after),
    ...written.flatMap((field) => [
      ...fieldDifferences({ kind: after.kind, field }, before[field], after[field]),
    ]),
  ];
}

/** What people wrote into the metadata, but for the copy of the whole that apply leaves there. */
export function metadataDifferences(before: KubeObject, after: KubeObject): JsonObject[] {
  return writtenMetadata.flatMap((name) => {
    const at = { kind: after.kind, field: `metadata.${name}` };
    return [...fieldDifferences(at, writtenOf(before, name), writtenOf(after, name))];
  });
}

function writtenOf({ metadata }: KubeObject, name: (typeof writtenMetadata)[number]): unknown {
  const value = metadata[name];
  if (name !== "annotations" || !isJsonObject(value)) return value;
  const { [lastApplied]: _copy, ...rest } = value;
  return rest;
}

/** Where a value stands: values of some kinds and fields are not shown. */
interface At {
  readonly kind: string;
  readonly field: string;
}

/** Fields that differ, down to what is no map. */
export function* fieldDifferences(at: At, before: unknown, after: unknown): Iterable<JsonObject> {
  if (isMap(at.field, before, after)) {
    // cast: one is a map, and the other a map or nothing.
    const [old, now] = [before ?? {}, after ?? {}] as [JsonObject, JsonObject];
    for (const key of new Set([...Object.keys(old), ...Object.keys(now)])) {
      yield* fieldDifferences({ ...at, field: below(at.field, key) }, old[key], now[key]);
    }
    return;
  }
  if (JSON.stringify(before) === JSON.stringify(after)) return;
  yield { field: at.field.slice(0, textMax), from: shown(at, before), to: shown(at, after) };
}

/** A map that comes or goes is told by its members; an empty one only where that says something. */
function isMap(field: string, before: unknown, after: unknown): boolean {
  if (isJsonObject(before) && isJsonObject(after)) return true;
  const [some, other] = isJsonObject(before) ? [before, after] : [after, before];
  const isTold = mapsOfNames.test(field) || (isJsonObject(some) && Object.keys(some).length > 0);
  return other === undefined && isJsonObject(some) && isTold;
}

function below(field: string, key: string): string {
  return mapsOfNames.test(field) ? `${field}[${key}]` : `${field}.${key}`;
}

function shown({ kind, field }: At, value: unknown): string {
  if (value === undefined) return "nothing";
  const isHidden = kind === "Secret" ? !openInSecrets.test(field) : hiddenFields.test(field);
  if (isHidden) return notShown;
  const name = field.slice(field.lastIndexOf(".") + 1);
  // cast: a member of an object of the API is JSON. Its name may tell that it is a secret.
  const [told] = Object.values(redactFields({ [name]: value as Json }));
  return (JSON.stringify(told) ?? "nothing").slice(0, textMax);
}
