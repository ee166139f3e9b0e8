import { stringify } from "yaml";
import type { KubeObject } from "../../kernel/object.ts";
import { usageError } from "../command.ts";
import type { ServedKind } from "./discovery.ts";
import { compileTemplate } from "./json-path-template.ts";
import { shownName } from "./kinds.ts";

/** How results are wanted: rows for people, or text of objects for programs. */
export type Output =
  | { readonly form: "table"; readonly isWide: boolean }
  | { readonly form: "name" }
  | { readonly form: "text"; readonly write: (value: unknown) => string };

/** Reads the value of -o. */
export function readOutput(text: string | undefined): Output {
  const [form, template] = splitOnce(text ?? "table");
  switch (form) {
    case "table":
      return { form: "table", isWide: false };
    case "wide":
      return { form: "table", isWide: true };
    case "name":
      return { form: "name" };
    case "json":
      return { form: "text", write: (value) => JSON.stringify(value, undefined, 4) };
    case "yaml":
      return { form: "text", write: toYaml };
    case "jsonpath": {
      if (template === undefined) throw usageError("-o jsonpath= needs a template: {.metadata}");
      const fill = compileTemplate(template);
      // Every result ends its line; a template that does so itself means no second one.
      return { form: "text", write: (value) => fill(value).replace(/\n$/, "") };
    }
    default:
      throw usageError(
        `there is no output "${text}": take table, wide, json, yaml, name or jsonpath=…`,
      );
  }
}

/** YAML as people write it; strings that YAML 1.1 would read as something else are quoted. */
export function toYaml(value: unknown): string {
  return stringify(value, { version: "1.1", lineWidth: 0, aliasDuplicateObjects: false }).trimEnd();
}

/** One object as it is, several as a List, as kubectl gives them to programs. */
export function asDocument(objects: readonly KubeObject[], isOne: boolean): unknown {
  const shown = objects.map(withoutManagedFields);
  if (isOne && shown.length === 1) return shown[0];
  return { apiVersion: "v1", items: shown, kind: "List", metadata: { resourceVersion: "" } };
}

/** managedFields is bookkeeping of the server's, and longer than all the rest. */
export function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}

export function nameLine(kind: ServedKind, object: KubeObject): string {
  return shownName(kind, object.metadata.name ?? "");
}

function splitOnce(text: string): [string, string | undefined] {
  const at = text.indexOf("=");
  return at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
}
