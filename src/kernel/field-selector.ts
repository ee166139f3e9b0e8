import type { KubeObject } from "./object.ts";
import { badRequest } from "./status.ts";

/** All requirements must hold. The empty selector matches everything. */
export type FieldSelector = readonly FieldRequirement[];

export interface FieldRequirement {
  readonly field: string;
  readonly operator: "=" | "!=";
  readonly value: string;
}

/** How the value of a field is read; "" where it is absent, as in Kubernetes. */
export type FieldReader = (object: KubeObject) => string;

/** The fields by which one kind can be selected. */
export type SelectableFields = Readonly<Record<string, FieldReader>>;

/** Reads the string form, as in `?fieldSelector=a=b,c!=d`. Throws an ApiError 400. */
export function parseFieldSelector(text: string): FieldSelector {
  return splitTerms(text)
    .filter((term) => term !== "")
    .map((term) => parseTerm(text, term));
}

/** Throws an ApiError 400 where the selector names a field that this kind does not offer. */
export function assertFieldsSupported(selector: FieldSelector, fields: SelectableFields): void {
  for (const { field } of selector) {
    if (!Object.hasOwn(fields, field)) throw badRequest(`field label not supported: ${field}`);
  }
}

/** Whether the object is selected. The fields must have been checked before. */
export function matchesFields(
  selector: FieldSelector,
  object: KubeObject,
  fields: SelectableFields,
): boolean {
  return selector.every(({ field, operator, value }) => {
    const actual = fields[field]?.(object) ?? "";
    return (actual === value) === (operator === "=");
  });
}

/** The value that a selector demands of a field: `metadata.name=x` needs no scan. */
export function requiredFieldValue(selector: FieldSelector, field: string): string | undefined {
  return selector.find((requirement) => requirement.field === field && requirement.operator === "=")
    ?.value;
}

/** The fields by which a kind can be selected, as in Kubernetes. */
export function selectableFieldsOf(resource: {
  group: string;
  kind: string;
  namespaced: boolean;
}): SelectableFields {
  const own = resource.group === "" ? coreFields[resource.kind] : undefined;
  return {
    "metadata.name": (object) => object.metadata.name ?? "",
    ...(resource.namespaced
      ? { "metadata.namespace": (object: KubeObject) => object.metadata.namespace ?? "" }
      : {}),
    ...own,
  };
}

const coreFields: Readonly<Record<string, SelectableFields>> = {
  Namespace: { "status.phase": readerOf("status", "phase") },
  Secret: { type: readerOf("type") },
  Event: {
    "involvedObject.kind": readerOf("involvedObject", "kind"),
    "involvedObject.namespace": readerOf("involvedObject", "namespace"),
    "involvedObject.name": readerOf("involvedObject", "name"),
    "involvedObject.uid": readerOf("involvedObject", "uid"),
    "involvedObject.apiVersion": readerOf("involvedObject", "apiVersion"),
    "involvedObject.resourceVersion": readerOf("involvedObject", "resourceVersion"),
    "involvedObject.fieldPath": readerOf("involvedObject", "fieldPath"),
    reason: readerOf("reason"),
    reportingComponent: readerOf("reportingComponent"),
    // Events of the newer form name their source only as the reporting component.
    source: (object) =>
      readerOf("source", "component")(object) || readerOf("reportingComponent")(object),
    type: readerOf("type"),
  },
};

function readerOf(...path: string[]): FieldReader {
  return (object) => {
    let value: unknown = object;
    for (const key of path) {
      if (typeof value !== "object" || value === null) return "";
      value = Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
    }
    return typeof value === "string" ? value : "";
  };
}

/** Cuts at commas that no backslash escapes; the escapes stay in the terms. */
function splitTerms(text: string): string[] {
  const terms: string[] = [];
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === ",") {
      terms.push(text.slice(start, i));
      start = i + 1;
    }
  }
  return [...terms, text.slice(start)];
}

function parseTerm(selector: string, term: string): FieldRequirement {
  const found = /!=|==|=/.exec(term);
  if (found === null) {
    throw badRequest(`invalid selector: '${selector}'; can't understand '${term}'`);
  }
  const value = unescape(term.slice(found.index + found[0].length));
  const operator = found[0] === "!=" ? "!=" : "=";
  return { field: term.slice(0, found.index), operator, value };
}

function unescape(text: string): string {
  let value = "";
  for (let i = 0; i < text.length; i++) {
    const character = text[i] ?? "";
    if (character === "," || character === "=") {
      // Kubernetes prints the character as its code point.
      const code = character.charCodeAt(0);
      throw badRequest(`invalid field selector: unescaped character in value: ${code}`);
    }
    if (character !== "\\") {
      value += character;
      continue;
    }
    const escaped = text[++i] ?? "";
    if (!["\\", ",", "="].includes(escaped)) {
      throw badRequest(`invalid field selector: invalid escape sequence: \\${escaped}`);
    }
    value += escaped;
  }
  return value;
}
