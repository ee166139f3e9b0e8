import { posix } from "node:path";
import { type Module, type Reference, readModule } from "./module.ts";
import { testSupport } from "./policy.ts";
import { codeOf, type Token, tokenize } from "./tokens.ts";

/** A text file of the repository. Paths are relative to its root, with forward slashes. */
export interface TextFile {
  path: string;
  text: string;
}

/** A file of TypeScript or JavaScript, read once for all rules. */
export interface CodeFile extends TextFile {
  tokens: Token[];
  /** The tokens without comments. */
  code: Token[];
  module: Module;
  /** The files that it leans on, by path; packages are not among them. */
  targets: (Omit<Reference, "specifier"> & { path: string })[];
}

/** The repository as the rules see it. */
export interface Project {
  files: readonly TextFile[];
  code: ReadonlyMap<string, CodeFile>;
  /** The names in package.json, by what they are for. */
  packages: { runtime: ReadonlySet<string>; dev: ReadonlySet<string> };
}

/** Something that breaks a rule. The message says what, why, and what to do instead. */
export interface Finding {
  path: string;
  line: number;
  rule: string;
  message: string;
}

export type Rule = (project: Project) => Finding[];

/** Reads the files into a project. Nothing here touches the disk. */
export function readProject(files: readonly TextFile[]): Project {
  const code = new Map<string, CodeFile>();
  for (const file of files) {
    if (/\.(ts|mjs|cjs)$/.test(file.path)) code.set(file.path, readCode(file));
  }
  return { files, code, packages: readPackages(files) };
}

/** Whether a file exists only to test or measure: it may lean on anything and use any clock. */
function isTest(path: string): boolean {
  return path.endsWith(".test.ts") || path.startsWith("test/") || path.startsWith("bench/");
}

/** Whether it is a test, or something that only tests use. */
export function servesTests(path: string): boolean {
  return isTest(path) || testSupport.some(({ pattern }) => pattern.test(path));
}

/** Whether a machine wrote it: sizes say nothing then. */
export function isGenerated(path: string): boolean {
  return path.endsWith(".generated.ts") || path === "package-lock.json";
}

function readCode(file: TextFile): CodeFile {
  const tokens = tokenize(file.text);
  const code = codeOf(tokens);
  const module = readModule(code);
  const targets = module.references
    .filter(({ specifier }) => specifier.startsWith("."))
    .map(({ specifier, names, line, how }) => {
      return { path: posix.join(posix.dirname(file.path), specifier), names, line, how };
    });
  return { ...file, tokens, code, module, targets };
}

function readPackages(files: readonly TextFile[]): Project["packages"] {
  const text = files.find((file) => file.path === "package.json")?.text ?? "{}";
  const manifest: unknown = JSON.parse(text);
  const names = (key: string): string[] => {
    const part: unknown = isRecord(manifest) ? manifest[key] : undefined;
    return isRecord(part) ? Object.keys(part) : [];
  };
  return {
    runtime: new Set([...names("dependencies"), ...names("optionalDependencies")]),
    dev: new Set(names("devDependencies")),
  };
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null;
}
