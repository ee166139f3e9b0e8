import { readFileSync, writeFileSync } from "node:fs";
import { readRepository } from "../../scripts/tidy/repository.ts";
import { readGuards } from "../../scripts/tidy/guards.ts";
import { codeOf, tokenize } from "../../scripts/tidy/tokens.ts";
import { fileURLToPath } from "node:url";

/** A test that fails when a guard is broken. */
export interface CatchingTest {
  /** From the root of the repository. */
  readonly file: string;
  /** With the names of the groups that it is part of. */
  readonly name: string;
}

/** By what something broken is caught: a test, or a seed of the simulated runs. */
export type Catcher =
  | { readonly test: CatchingTest }
  | { readonly seed: number; readonly failure: string };

export type GuardEntry = Catcher & { readonly id: string };

/** Of a mutant in mutants.ts. */
export type LineEntry = Catcher & { readonly name: string };

const recordFile = new URL("./guards.json", import.meta.url);
const lineFile = new URL("./lines.json", import.meta.url);
const root = fileURLToPath(new URL("../../", import.meta.url));

export function readGuardEntries(): readonly GuardEntry[] {
  // cast: npm run mutants -- --write made it, and tidy compares it with the guards.
  return JSON.parse(readFileSync(recordFile, "utf8")) as readonly GuardEntry[];
}

/** Ordered by id, so that two branches seldom change the same lines. */
export function writeGuardEntries(entries: Iterable<GuardEntry>): void {
  const ordered = [...entries].toSorted((a, b) => (a.id < b.id ? -1 : 1));
  writeFileSync(recordFile, `${JSON.stringify(ordered, null, 2)}\n`);
}

export function readLineEntries(): readonly LineEntry[] {
  // cast: npm run mutants -- --write made it, and the suite compares it with mutants.ts.
  return JSON.parse(readFileSync(lineFile, "utf8")) as readonly LineEntry[];
}

/** In the order that they are given. */
export function writeLineEntries(entries: readonly LineEntry[]): void {
  writeFileSync(lineFile, `${JSON.stringify(entries, null, 2)}\n`);
}

/** A guard, and the file that it is in. */
export interface MarkedGuard {
  readonly id: string;
  readonly file: string;
}

/** Every guard of the sources, and every test file that could catch one. */
export function readMarked(): { guards: MarkedGuard[]; testFiles: string[] } {
  const files = readRepository(root).filter(({ path }) => {
    return /^(src\/.*|test\/[^/]+)\.ts$/.test(path);
  });
  const isTest = (path: string): boolean => path.endsWith(".test.ts");
  const guards = files
    .filter(({ path, text }) => path.startsWith("src/") && text.includes("kernel/guard.ts"))
    .filter(({ path }) => !isTest(path))
    .flatMap(({ path, text }) => {
      const calls = readGuards(codeOf(tokenize(text)));
      return calls.flatMap(({ id }) => (id === undefined ? [] : [{ id, file: path }]));
    });
  return { guards, testFiles: files.map(({ path }) => path).filter(isTest) };
}
