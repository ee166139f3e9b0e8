import {
  assertFieldsSupported,
  matchesFields,
  parseFieldSelector,
  selectableFieldsOf,
  type FieldSelector,
} from "../../kernel/field-selector.ts";
import { matchesLabels, parseLabelSelector } from "../../kernel/label-selector.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { badRequest } from "../../kernel/status.ts";
import type { ResourceRequest } from "../contract.ts";

/** Which objects of a kind a list, watch or deletion is about. */
export interface Selection {
  /** All that match are in ids that start so. */
  readonly prefix: string;
  /** The only id that can match, where the selector names one. */
  readonly onlyId: string | undefined;
  /** Undefined: everything under the prefix matches, and nothing has to be parsed. */
  readonly matches: ((object: KubeObject) => boolean) | undefined;
}

/** Reads the selectors of a request. Throws 400 for what is none, or names an unknown field. */
export function selectionOf(request: ResourceRequest): Selection {
  const { resource, namespace, query } = request;
  const labels = parseLabelSelector(query.get("labelSelector") ?? "");
  const fields = parseFieldSelector(query.get("fieldSelector") ?? "");
  const selectable = selectableFieldsOf(resource);
  assertFieldsSupported(fields, selectable);
  const name = selectedName(request, fields);
  const prefix = namespace === undefined ? "" : `${namespace}/`;
  // Over all namespaces several objects may have the name.
  const isOne = name !== undefined && resource.namespaced === (namespace !== undefined);
  const rest = isOne ? fields.filter((field) => !namesOne(field)) : fields;
  const matches = (object: KubeObject): boolean =>
    matchesLabels(labels, object.metadata.labels) && matchesFields(rest, object, selectable);
  return {
    prefix,
    onlyId: isOne ? `${prefix}${name}` : undefined,
    matches: labels.length === 0 && rest.length === 0 ? undefined : matches,
  };
}

/** The name that the URL or the selector demands. Both may, if they agree. */
function selectedName(request: ResourceRequest, fields: FieldSelector): string | undefined {
  const names = fields.filter(namesOne).map(({ value }) => value);
  const name = request.name ?? names[0];
  if (names.some((other) => other !== name) && request.name !== undefined) {
    throw badRequest("fieldSelector metadata.name doesn't match requested name");
  }
  // Two names at once: nothing has both, and the selector itself finds that out.
  return names.every((other) => other === name) ? name : undefined;
}

function namesOne({ field, operator }: FieldSelector[number]): boolean {
  return field === "metadata.name" && operator === "=";
}
