import type { ServedKind } from "./discovery.ts";

/** The path of a kind's objects: of one namespace, or of all where there is none. */
export function collectionPath(kind: ServedKind, namespace: string | undefined): string {
  const root = kind.group === "" ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`;
  const hasScope = kind.namespaced && namespace !== undefined;
  const scope = hasScope ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${root}${scope}/${kind.plural}`;
}

/** Where one object is. The namespace of a kind without namespaces is left out. */
export interface ObjectAt {
  readonly kind: ServedKind;
  readonly namespace: string;
  readonly name: string;
}

export function objectPath({ kind, namespace, name }: ObjectAt): string {
  return `${collectionPath(kind, namespace)}/${encodeURIComponent(name)}`;
}
