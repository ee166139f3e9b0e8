import { assert } from "../kernel/assert.ts";
import type { KindRoute, ObjectName } from "./kind.ts";

export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** The URL of a kind's objects, of one namespace or all of them. */
export function collectionUrl(
  kind: KindRoute,
  namespace: string | undefined,
  query: Query,
): string {
  assert(kind.namespaced || namespace === undefined, `${kind.kind} has no namespace`);
  const root = kind.group === "" ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`;
  const scope = namespace === undefined ? "" : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${root}${scope}/${kind.plural}${queryString(query)}`;
}

/** The URL of one object or one of its subresources. */
export function objectUrl(
  kind: KindRoute,
  object: ObjectName & { subresource?: "status" | "scale" },
  query: Query = {},
): string {
  const { namespace, name, subresource } = object;
  assert(name !== "", "an object has a name");
  assert(kind.namespaced === (namespace !== undefined), `${kind.kind} "${name}" has its namespace`);
  const tail = subresource === undefined ? "" : `/${subresource}`;
  const collection = collectionUrl(kind, namespace, {});
  return `${collection}/${encodeURIComponent(name)}${tail}${queryString(query)}`;
}

function queryString(query: Query): string {
  const parts = Object.entries(query).flatMap(([key, value]) => {
    return value === undefined ? [] : [`${key}=${encodeURIComponent(String(value))}`];
  });
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}
