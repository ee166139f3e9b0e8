import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, posix } from "node:path";
import type { CatchingTest } from "../../test/mutants/record.ts";
import { runTests } from "../../test/mutants/test-run.ts";

/** What one run of a test file with nothing broken showed. */
interface Traced {
  /** Guards that stopped something, by their ids. */
  readonly stopped: ReadonlySet<string>;
  /** Tests that passed. */
  readonly passed: ReadonlySet<string>;
}

/** What is broken, and where. */
export interface Broken {
  /** The name of the mutant. */
  readonly name: string;
  readonly files: readonly string[];
  /** If it is one guard: only tests are tried in which that stops something. */
  readonly guard?: string;
}

/**
 * Searches for tests that fail when something is broken. Each test file is run once with nothing
 * broken, to learn which tests pass and which guards stopped anything there: with a guard broken
 * only these files are run.
 */
export class TestSearch {
  readonly #files: readonly string[];
  readonly #isWide: boolean;
  readonly #traces = new Map<string, Promise<Traced>>();
  readonly #folder = mkdtempSync(join(tmpdir(), "berth-mutants-"));

  constructor(files: readonly string[], { isWide }: { readonly isWide: boolean }) {
    this.#files = files;
    this.#isWide = isWide;
  }

  async find(broken: Broken, known?: CatchingTest): Promise<CatchingTest | undefined> {
    if (known !== undefined && (await this.#catches(broken, known))) return known;
    for (const file of this.#isWide ? this.#files : near(broken.files, this.#files)) {
      const { stopped, passed } = await this.#trace(file);
      if (broken.guard !== undefined && !stopped.has(broken.guard)) continue;
      const ends = await runTests({ file, broken: broken.name });
      const refuted = ends.find(({ name, end }) => end === "refuted" && passed.has(name));
      if (refuted !== undefined) return { file, name: refuted.name };
    }
    return undefined;
  }

  async #catches(broken: Broken, { file, name }: CatchingTest): Promise<boolean> {
    if (!this.#files.includes(file)) return false;
    const [end] = await runTests({ file, names: [name], broken: broken.name });
    if (end?.name !== name || end.end !== "refuted") return false;
    const [whole] = await runTests({ file, names: [name] });
    return whole?.end === "passed";
  }

  #trace(file: string): Promise<Traced> {
    const known = this.#traces.get(file);
    if (known !== undefined) return known;
    const traced = this.#runTraced(file);
    this.#traces.set(file, traced);
    return traced;
  }

  async #runTraced(file: string): Promise<Traced> {
    const trace = join(this.#folder, file.replaceAll("/", "-"));
    const ends = await runTests({ file, trace });
    const passed = ends.filter(({ end }) => end === "passed").map(({ name }) => name);
    return { stopped: new Set(readLines(trace)), passed: new Set(passed) };
  }
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, "utf8").split("\n");
  } catch {
    // A process that was stopped, or that loaded no guard, has written nothing.
    return [];
  }
}

/** Tests in the folders of files, those of their own names first, then in the folders above. */
function near(files: readonly string[], testFiles: readonly string[]): string[] {
  const own = new Set(files.map((file) => file.replace(/\.ts$/, ".test.ts")));
  const ordered = [...testFiles].toSorted((a, b) => Number(own.has(b)) - Number(own.has(a)));
  const found = files.flatMap((file) => {
    return foldersAbove(file).flatMap((folder) => {
      return ordered.filter((test) => posix.dirname(test) === folder);
    });
  });
  return [...new Set(found)];
}

/** The folder of a file and those above it, without the one of all sources. */
function foldersAbove(file: string): string[] {
  const found: string[] = [];
  for (let folder = posix.dirname(file); folder !== "src"; folder = posix.dirname(folder)) {
    found.push(folder);
  }
  return found;
}
