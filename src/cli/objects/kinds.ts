import { CommandError, usageError } from "../command.ts";
import { apiVersionOfKind, type ServedKind } from "./discovery.ts";

/** The kinds that a word or a comma list of them means, in order and each once. */
export function resolveKinds(served: readonly ServedKind[], words: string): ServedKind[] {
  const found = new Set<ServedKind>();
  for (const word of words.split(",")) {
    if (word === "") continue;
    for (const kind of resolveWord(served, word.toLowerCase())) found.add(kind);
  }
  if (found.size === 0) throw usageError(`"${words}" names no kind`);
  return [...found];
}

/** The one kind that a word means. */
export function resolveKind(served: readonly ServedKind[], word: string): ServedKind {
  const kinds = resolveKinds(served, word);
  const [kind] = kinds;
  if (kind === undefined || kinds.length > 1) {
    throw usageError(`"${word}" means several kinds; name one of them`);
  }
  return kind;
}

/** The kind of a manifest. */
export function kindOfObject(
  served: readonly ServedKind[],
  object: { apiVersion: string; kind: string },
): ServedKind | undefined {
  return served.find((kind) => {
    return kind.kind === object.kind && apiVersionOfKind(kind) === object.apiVersion;
  });
}

/** "virtualmachine.berth.dev/web", as kubectl names what it speaks of. */
export function shownName(kind: ServedKind, name: string): string {
  return `${typeName(kind)}/${name}`;
}

/** "virtualmachine.berth.dev". */
export function typeName(kind: ServedKind): string {
  const lower = kind.kind.toLowerCase();
  return kind.group === "" ? lower : `${lower}.${kind.group}`;
}

function resolveWord(served: readonly ServedKind[], word: string): ServedKind[] {
  const [name = "", ...rest] = word.split(".");
  const suffix = rest.join(".");
  const named = served.filter((kind) => {
    return hasName(kind, name) && (suffix === "" || suffixesOf(kind).includes(suffix));
  });
  const exact = named.find((kind) => !kind.shortNames.includes(name)) ?? named[0];
  if (exact !== undefined) return [exact];
  const category = served.filter((kind) => {
    return kind.categories.includes(word) && kind.verbs.includes("list");
  });
  if (category.length > 0) return category;
  throw new CommandError(
    `the server doesn't have a resource type "${word}"${suggestion(served, word)}`,
  );
}

function hasName(kind: ServedKind, name: string): boolean {
  return [kind.plural, kind.singular, kind.kind.toLowerCase(), ...kind.shortNames].includes(name);
}

/** `vm.berth.dev`, or with the version before the group: `vm.v1alpha1.berth.dev`. */
function suffixesOf(kind: ServedKind): string[] {
  return [kind.group, `${kind.version}.${kind.group}`];
}

function suggestion(served: readonly ServedKind[], word: string): string {
  const near = served.find((kind) => kind.plural.startsWith(word) || kind.plural.includes(word));
  return near === undefined ? "" : `; did you mean ${near.plural}?`;
}
