import { stringValue, type Token } from "./tokens.ts";

/** How one file leans on another. */
export interface Reference {
  specifier: string;
  /**
   * "url" is `new URL("./worker.ts", import.meta.url)`, the way to name a worker or an asset;
   * "lazy" is `import("./x.ts")`.
   */
  how: "import" | "reexport" | "lazy" | "url";
  /** The names taken from there; "*" is all of them. */
  names: string[];
  line: number;
}

/** What a file takes and gives. */
export interface Module {
  references: Reference[];
  /** Named exports that exist at run time: functions, constants, classes. */
  values: { name: string; line: number }[];
  /** What cannot be followed, or not by name: `import(variable)`, `export * from`, … */
  oddities: { what: "computed import" | "wildcard" | "default export"; line: number }[];
}

/** Reads imports and exports from the tokens of a file, comments left out. */
export function readModule(code: readonly Token[]): Module {
  const module: Module = { references: [], values: [], oddities: [] };
  for (const [index, token] of code.entries()) {
    if (token.kind !== "word" || isMember(code, index)) continue;
    if (token.text === "import") readImport(module, code, index);
    else if (token.text === "export") readExport(module, code, index);
    else if (token.text === "new") readUrl(module, code, index);
  }
  return module;
}

/** Whether the word at an index is a property: `a.import`, `{ import: 1 }`. */
function isMember(code: readonly Token[], index: number): boolean {
  return /^\??\.$/.test(textAt(code, index - 1)) || textAt(code, index + 1) === ":";
}

function readImport(module: Module, code: readonly Token[], index: number): void {
  const line = code[index]?.line ?? 0;
  const next = textAt(code, index + 1);
  if (next === ".") return;
  if (next === "(") {
    const argument = code[index + 2];
    if (argument?.kind !== "string") module.oddities.push({ what: "computed import", line });
    else addReference(module, { how: "lazy", names: ["*"], line, specifier: argument });
    return;
  }
  const end = code.findIndex((token, at) => at > index && token.kind === "string");
  const specifier = code[end];
  if (specifier === undefined) return;
  const names = importedNames(code.slice(index + 1, end));
  addReference(module, { how: "import", names, line, specifier });
}

function importedNames(clause: readonly Token[]): string[] {
  if (clause.some((token) => token.text === "*")) return ["*"];
  const open = clause.findIndex((token) => token.text === "{");
  const isDefault = clause[0]?.kind === "word" && !["type", "{"].includes(clause[0].text);
  return [...(isDefault ? ["default"] : []), ...(open === -1 ? [] : listedNames(clause, open))];
}

/** The first name of each entry of `{ a, b as c, type d }`, which starts at an index. */
function listedNames(code: readonly Token[], open: number): string[] {
  return listEntries(code, open).map((entry) => entry.name);
}

function listEntries(
  code: readonly Token[],
  open: number,
): { name: string; isType: boolean; alias: string; line: number }[] {
  const close = code.findIndex((token, at) => at > open && token.text === "}");
  const entries: Token[][] = [[]];
  for (const token of code.slice(open + 1, close === -1 ? undefined : close)) {
    if (token.text === ",") entries.push([]);
    else entries.at(-1)?.push(token);
  }
  return entries.flatMap((entry) => {
    const isType = entry[0]?.text === "type" && entry.length > 1;
    const first = entry[isType ? 1 : 0];
    const alias = entry.at(-1)?.text ?? "";
    return first ? [{ name: first.text, isType, alias, line: first.line }] : [];
  });
}

function readExport(module: Module, code: readonly Token[], index: number): void {
  const line = code[index]?.line ?? 0;
  const isType = textAt(code, index + 1) === "type";
  const start = isType && ["{", "*"].includes(textAt(code, index + 2)) ? index + 2 : index + 1;
  const first = textAt(code, start);
  if (first === "default") module.oddities.push({ what: "default export", line });
  else if (first === "*") readWildcard(module, code, start);
  else if (first === "{") readList(module, code, { open: start, isType });
  else if (!isType) readDeclaration(module, code, start);
}

function readWildcard(module: Module, code: readonly Token[], star: number): void {
  const line = code[star]?.line ?? 0;
  const specifier = code.slice(star, star + 5).find((token) => token.kind === "string");
  module.oddities.push({ what: "wildcard", line });
  if (specifier) addReference(module, { how: "reexport", names: ["*"], line, specifier });
}

function readList(
  module: Module,
  code: readonly Token[],
  list: { open: number; isType: boolean },
): void {
  const entries = listEntries(code, list.open);
  const close = code.findIndex((token, at) => at > list.open && token.text === "}");
  const specifier = code[close + 2];
  if (textAt(code, close + 1) === "from" && specifier?.kind === "string") {
    const names = entries.map((entry) => entry.name);
    const line = code[list.open]?.line ?? 0;
    return addReference(module, { how: "reexport", names, line, specifier });
  }
  if (list.isType) return;
  for (const { alias, isType, line } of entries) {
    if (!isType) module.values.push({ name: alias, line });
  }
}

const declarationWords = new Set(["async", "function", "*", "const", "let", "class", "abstract"]);

function readDeclaration(module: Module, code: readonly Token[], start: number): void {
  let at = start;
  while (declarationWords.has(textAt(code, at))) at += 1;
  const name = code[at];
  if (at > start && name?.kind === "word") {
    module.values.push({ name: name.text, line: name.line });
  }
}

const urlBase = [",", "import", ".", "meta", ".", "url"];

/** `new URL("./x", import.meta.url)` */
function readUrl(module: Module, code: readonly Token[], index: number): void {
  const specifier = code[index + 3];
  if (textAt(code, index + 1) !== "URL" || specifier?.kind !== "string") return;
  if (!urlBase.every((text, offset) => textAt(code, index + 4 + offset) === text)) return;
  addReference(module, { how: "url", names: ["*"], line: specifier.line, specifier });
}

function addReference(
  module: Module,
  reference: Omit<Reference, "specifier"> & { specifier: Token },
): void {
  module.references.push({ ...reference, specifier: stringValue(reference.specifier) });
}

function textAt(code: readonly Token[], index: number): string {
  return code[index]?.text ?? "";
}
