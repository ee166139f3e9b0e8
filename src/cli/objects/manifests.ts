import { extname, join, resolve } from "node:path";
import { type Document, Lexer, parseAllDocuments, type ScalarTag, type Tags } from "yaml";
import { isJsonObject, type JsonObject } from "../../kernel/json.ts";
import { limits } from "../../kernel/limits.ts";
import { CommandError } from "../command.ts";
import type { Machine } from "./machine.ts";

/** One document of a file: what it declares, or what is wrong with it. */
export type Manifest = { readonly where: string } & ({ readonly fault: string } | Declared);

/** An object as a file declares it, and what it calls itself. */
export interface Declared {
  readonly object: JsonObject;
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly namespace: string | undefined;
}

export interface ManifestOptions {
  readonly directory: string;
  /** Also the folders in a folder. */
  readonly isRecursive: boolean;
}

/** kubectl's reader also knows these from YAML 1.1, and a manifest means the same to both. */
const oldBoolean: ScalarTag = {
  tag: "tag:yaml.org,2002:bool",
  default: true,
  test: /^(?:y|Y|yes|Yes|YES|n|N|no|No|NO|on|On|ON|off|Off|OFF)$/,
  resolve: (text) => /^(?:y|yes|on)$/i.test(text),
};
const oldOctal: ScalarTag = {
  tag: "tag:yaml.org,2002:int",
  default: true,
  test: /^0[0-7]+$/,
  resolve: (text) => Number.parseInt(text, 8),
};

function customTags(tags: Tags): Tags {
  return [oldBoolean, oldOctal, ...tags];
}

/** A file of manifests. Larger ones are made by machines, and can be split by them. */
const fileBytesMax = 16 * 1024 * 1024;
/** Lexemes of one file: parsing takes memory in proportion to them. */
const lexemesMax = 2_000_000;
/** Folders in folders. Deeper is a loop of links, or not a folder of manifests. */
const foldersDeepMax = 32;
const extensions = [".yaml", ".yml", ".json"];

/** Reads files, folders and standard input ("-"). A file that is not there is refused at once. */
export async function readManifests(
  machine: Machine,
  sources: readonly string[],
  options: ManifestOptions,
): Promise<Manifest[]> {
  const found: Manifest[] = [];
  for (const source of sources) {
    if (source === "-") found.push(...readDocuments(await machine.readInput(), "standard input"));
    else found.push(...readPath(machine, source, options));
  }
  return found;
}

function readPath(machine: Machine, source: string, options: ManifestOptions): Manifest[] {
  const path = resolve(options.directory, source);
  if (machine.readFolder(path) === undefined) {
    const text = machine.readFile(path);
    if (text === undefined) throw new CommandError(`there is no file ${source}`);
    return readDocuments(text, source);
  }
  const depthMax = options.isRecursive ? foldersDeepMax : 0;
  const files = filesOf(machine, path, depthMax);
  if (files.length === 0) {
    throw new CommandError(`${source} has no files that end in ${extensions.join(", ")}`);
  }
  return files.flatMap((file) => {
    return readDocuments(machine.readFile(file) ?? "", join(source, file.slice(path.length)));
  });
}

function filesOf(machine: Machine, folder: string, depthLeft: number): string[] {
  return (machine.readFolder(folder) ?? []).flatMap(({ name, isFolder }) => {
    const path = join(folder, name);
    if (isFolder) return depthLeft > 0 ? filesOf(machine, path, depthLeft - 1) : [];
    return extensions.includes(extname(name)) ? [path] : [];
  });
}

/** The documents of one text. A bad one is named by its number, and the others are still read. */
export function readDocuments(text: string, source: string): Manifest[] {
  const harm = harmOf(text);
  if (harm !== undefined) return [{ where: source, fault: harm }];
  const documents = parseAllDocuments(text, { merge: true, uniqueKeys: true, customTags });
  if (!Array.isArray(documents)) return [];
  return documents.flatMap((document, index) => {
    const where = documents.length === 1 ? source : `${source}, document ${index + 1}`;
    return readDocument(document, where);
  });
}

function readDocument(document: Document.Parsed, where: string): Manifest[] {
  const [error] = document.errors;
  if (error !== undefined) {
    return [
      { where, fault: `it is not YAML: ${(error.message.split("\n")[0] ?? "").replace(/:$/, "")}` },
    ];
  }
  let value: unknown;
  try {
    value = document.toJS({ maxAliasCount: limits.yamlAliases });
  } catch (cause) {
    return [{ where, fault: cause instanceof Error ? cause.message : String(cause) }];
  }
  // A file may begin or end with the mark between documents.
  if (value === null || value === undefined) return [];
  if (!isJsonObject(value)) return [{ where, fault: "it is not an object" }];
  return expandList(value, where);
}

/** A List of objects is as good as its objects one by one. */
function expandList(object: JsonObject, where: string): Manifest[] {
  const { kind, items } = object;
  if (kind !== "List" || !Array.isArray(items)) return [checked(object, where)];
  return items.map((item, index) => {
    const place = `${where}, item ${index + 1}`;
    return isJsonObject(item)
      ? checked(item, place)
      : { where: place, fault: "it is not an object" };
  });
}

function checked(object: JsonObject, where: string): Manifest {
  const { apiVersion, kind, metadata } = object;
  if (typeof apiVersion !== "string") return { where, fault: "apiVersion is missing" };
  if (typeof kind !== "string") return { where, fault: "kind is missing" };
  const { name, namespace } = isJsonObject(metadata) ? metadata : {};
  if (typeof name !== "string" || name === "") return { where, fault: "metadata.name is missing" };
  const place = typeof namespace === "string" && namespace !== "" ? namespace : undefined;
  return { where, object, apiVersion, kind, name, namespace: place };
}

const depthChange: Readonly<Record<string, number>> = { "[": 1, "{": 1, "]": -1, "}": -1 };

/** What would take the parser's memory or stack rather than declare something. */
function harmOf(text: string): string | undefined {
  if (text.length > fileBytesMax) return `it is larger than ${fileBytesMax} bytes: split it`;
  let [lexemes, aliases, depth] = [0, 0, 0];
  for (const lexeme of new Lexer().lex(text)) {
    lexemes++;
    depth += depthChange[lexeme] ?? 0;
    aliases += Number(lexeme.startsWith("*"));
    if (depth > limits.jsonDepth) return `it is nested deeper than ${limits.jsonDepth} levels`;
    if (aliases > limits.yamlAliases) return `it has more than ${limits.yamlAliases} aliases`;
    if (lexemes > lexemesMax) return "it has too many parts: split it";
  }
  return undefined;
}
