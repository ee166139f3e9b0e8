import { runGroup } from "./group.ts";
import { findTestFiles, runAlone, runBeside, runShared } from "./run-tests.ts";
import { patience, type Suite, type SuiteResult } from "./suite.ts";

const runs = { shared: runShared, alone: runAlone, beside: runBeside } as const;

/** Whether there is anything to run: the files of a suite may not have been written yet. */
export function exists({ work }: Suite): boolean {
  return work.kind === "command" || findTestFiles(work.files).length > 0;
}

/** Runs one suite to its end, or to the end of our patience. Never throws for a failing check. */
export async function runSuite(suite: Suite): Promise<SuiteResult> {
  const limitMs = suite.minutes * 60_000 * patience;
  const { work } = suite;
  if (work.kind === "command") return await runCommand(work.command, limitMs);
  const files = findTestFiles(work.files);
  return await runs[work.processes](files, limitMs);
}

async function runCommand(command: readonly string[], limitMs: number): Promise<SuiteResult> {
  const ended = await runGroup({ command, limitMs });
  if (ended.code === 0) return { passed: 1, failures: [], skips: [] };
  const how = ended.stopped ?? `it ended with ${ended.signal ?? `code ${ended.code}`}`;
  const failure = { place: command.join(" "), name: how, detail: ended.output };
  return { passed: 0, failures: [failure], skips: [] };
}
