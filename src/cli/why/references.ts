import { isJsonObject } from "../../kernel/json.ts";
import type { KubeObject } from "../../kernel/object.ts";

/** An object that another names, and the field that names it. */
export interface Reference {
  readonly kind: string;
  readonly namespace: string | undefined;
  readonly name: string;
  readonly field: string;
}

/** What a field of this name refers to. Any other `…Ref` is not followed. */
const kindOfField: readonly { readonly pattern: RegExp; readonly kind: string }[] = [
  { pattern: /^hypervisorRef$/, kind: "Hypervisor" },
  { pattern: /^imageRef$/, kind: "VMImage" },
  { pattern: /^classRef$/, kind: "VMClass" },
  { pattern: /^networkRef$/, kind: "VMNetwork" },
  { pattern: /^vmRef$/, kind: "VirtualMachine" },
  { pattern: /^snapshotRef$/, kind: "VMSnapshot" },
  { pattern: /^migrationRef$/, kind: "VMMigration" },
  { pattern: /[sS]ecretRef$/, kind: "Secret" },
];

/** Everything that an object depends on: what its spec names, and who owns it. */
export function referencesOf(object: KubeObject): Reference[] {
  const { namespace, ownerReferences = [] } = object.metadata;
  const owners = ownerReferences.map(({ kind, name }) => {
    return { kind, namespace, name, field: "metadata.ownerReferences" };
  });
  const named = [...referencesIn(object["spec"], "spec")].map((reference) => {
    return { ...reference, namespace: reference.namespace ?? namespace };
  });
  const unique = new Map<string, Reference>();
  for (const reference of [...named, ...owners]) {
    const key = `${reference.kind}/${reference.namespace ?? ""}/${reference.name}`;
    if (!unique.has(key)) unique.set(key, reference);
  }
  return [...unique.values()];
}

function* referencesIn(value: unknown, field: string): Generator<Reference> {
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) yield* referencesIn(item, `${field}[${index}]`);
    return;
  }
  if (!isJsonObject(value)) return;
  for (const [key, inner] of Object.entries(value)) {
    const path = `${field}.${key}`;
    const kind = kindOf(path, key);
    if (kind !== undefined && isJsonObject(inner) && typeof inner["name"] === "string") {
      const { name, namespace } = inner;
      yield { kind, name, namespace: stringOf(namespace), field: path };
    } else {
      yield* referencesIn(inner, path);
    }
  }
}

/** The image that fills a disk is named by `source.image`, without a Ref. */
function kindOf(path: string, key: string): string | undefined {
  if (path.endsWith("source.image")) return "VMImage";
  return kindOfField.find(({ pattern }) => pattern.test(key))?.kind;
}

function stringOf(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
