import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { TestEnd } from "./test-end.ts";

export interface TestRun {
  /** From the root of the repository. */
  readonly file: string;
  /** Full names; all tests of the file where nothing is said. */
  readonly names?: readonly string[];
  /** The name of the mutant: of mutants.ts, or "guard:ID". */
  readonly broken?: string;
  /** Where the ids of guards that stop something are written. */
  readonly trace?: string;
}

/** A broken test may wait for ever. */
const timeoutMs = 180_000;

/** Runs tests in a process of their own. What did not end in time is not among the ends. */
export async function runTests({ file, names = [], broken, trace }: TestRun): Promise<TestEnd[]> {
  const hook = new URL("./hook.ts", import.meta.url).href;
  const program = fileURLToPath(new URL("./run-tests.ts", import.meta.url));
  const root = fileURLToPath(new URL("../../", import.meta.url));
  const isHooked = broken !== undefined || trace !== undefined;
  const env = {
    ...process.env,
    // A test that runs inside of another would report to that one.
    NODE_TEST_CONTEXT: undefined,
    BERTH_MUTANT: broken,
    BERTH_GUARD_TRACE: trace,
  };
  const args = [
    ...(isHooked ? ["--import", hook] : []),
    program,
    file,
    ...names.map((name) => `^${escaped(name.replaceAll(" > ", " "))}$`),
  ];
  const printed = await new Promise<string>((resolve) => {
    const options = { env, cwd: root, timeout: timeoutMs, maxBuffer: 64 * 1024 * 1024 };
    execFile(process.execPath, args, options, (_, stdout) => resolve(stdout));
  });
  const lines = printed.split("\n").filter((line) => line.startsWith('{"name":'));
  // cast: run-tests.ts prints it.
  return lines.map((line) => JSON.parse(line) as TestEnd);
}

function escaped(text: string): string {
  return text.replaceAll(/[.*+?^${}()|[\]\\/]/g, String.raw`\$&`);
}
