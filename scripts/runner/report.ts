import { allowanceFor, type AllowedSkip } from "./skips.ts";
import type { Failure, Skip, Suite, SuiteResult } from "./suite.ts";

/** What all suites of a run came to. */
export interface RunResult {
  suites: { suite: Suite; result: SuiteResult }[];
}

/** How long a suite took. */
export interface Took {
  readonly tookMs: number;
  /** Before that, to build or install what it needs. Its budget does not include this. */
  readonly providedMs: number;
}

/** Checking that everything is installed takes less, and is not worth a word. */
const providedNotableMs = 1_000;

/** One line for a suite that has ended. */
export function suiteLine(suite: Suite, result: SuiteResult, took: Took): string {
  const { tookMs, providedMs } = took;
  const parts = [
    result.failures.length > 0 ? `${result.failures.length} failed` : "",
    result.passed > 0 ? `${result.passed} passed` : "",
    result.skips.length > 0 ? `${result.skips.length} skipped` : "",
  ];
  const late = tookMs > suite.minutes * 60_000 ? `, over its ${suite.minutes} min` : "";
  const provided =
    providedMs > providedNotableMs ? `, after ${formatTook(providedMs)} to provide its needs` : "";
  const said = parts.filter((part) => part !== "").join(", ");
  return `${suite.name.padEnd(12)} ${said.padEnd(28)} ${formatTook(tookMs)}${late}${provided}`;
}

/**
 * The end of the report: failures in full, skips with their reasons, the count. Where real
 * components are required, a skip that nobody allowed is a failure.
 */
export function closing(run: RunResult, strict: AllowedSkip[] | undefined): ClosingReport {
  const failures = run.suites.flatMap(({ suite, result }) => label(suite, result.failures));
  const skips = run.suites.flatMap(({ suite, result }) => label(suite, result.skips));
  const refused = strict === undefined ? [] : skips.filter((skip) => !allowanceFor(skip, strict));
  const passed = run.suites.reduce((sum, { result }) => sum + result.passed, 0);
  const failed = failures.length + refused.length;
  const lines = [
    ...failures.flatMap(failureLines),
    ...skipLines(
      skips.filter((skip) => !refused.includes(skip)),
      "Skipped:",
    ),
    ...skipLines(refused, "Skipped, although nothing in test/skips.json allows it:"),
    `${passed} passed, ${failed} failed`,
  ];
  return { lines, failed };
}

export interface ClosingReport {
  lines: string[];
  failed: number;
}

function label<T extends Failure | Skip>(
  suite: Suite,
  items: readonly T[],
): (T & { suite: string })[] {
  return items.map((item) => ({ ...item, suite: suite.name }));
}

function failureLines({ suite, place, name, detail }: Failure & { suite: string }): string[] {
  const indented = detail
    .trimEnd()
    .split("\n")
    .map((line) => `    ${line}`.trimEnd());
  return [`FAILED ${suite}: ${name}`, `    ${place}`, ...indented, ""];
}

function skipLines(skips: readonly (Skip & { suite: string })[], heading: string): string[] {
  if (skips.length === 0) return [];
  const entries = skips.map(({ suite, name, reason }) => {
    return name === suite ? `  ${suite}: ${reason}` : `  ${suite}: ${name}: ${reason}`;
  });
  return [heading, ...entries, ""];
}

function formatTook(tookMs: number): string {
  const seconds = tookMs / 1000;
  return seconds < 90 ? `${seconds.toFixed(1)} s` : `${(seconds / 60).toFixed(1)} min`;
}
