import { globSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type Ended, runGroup } from "./group.ts";
import type { Failure, SuiteResult } from "./suite.ts";
import { parseReport, type Report } from "./worker-report.ts";

const root = join(import.meta.dirname, "..", "..");
const worker = fileURLToPath(new URL("./worker.ts", import.meta.url));

/** More processes than this only make each other wait on the machines that we know. */
const shardsMax = 4;
/**
 * Unit tests do not sleep: a process of them that says nothing for so long hangs. On a machine with
 * other work, reading all files alone takes half a minute.
 */
const silenceMs = 120_000;

/** The files that exist for a suite's patterns, sorted. */
export function findTestFiles(patterns: readonly string[]): string[] {
  return globSync([...patterns], { cwd: root }).toSorted();
}

/** Each file in a process of its own, one after the other. The limit is for all of them. */
export async function runAlone(files: readonly string[], limitMs: number): Promise<SuiteResult> {
  return await runEach(files, { limitMs });
}

/** Each file in a process of its own, as many at a time as there are processors. */
export async function runBeside(files: readonly string[], limitMs: number): Promise<SuiteResult> {
  return await runWide(
    files.map((file) => [file]),
    (shard) => runEach(shard, { limitMs }),
  );
}

/**
 * Many files in few processes. A file that crashes, hangs or throws late spoils its process: then
 * the files of that one are repeated alone, which costs time only when something is wrong, and the
 * culprit is named while all others still count.
 */
export async function runShared(files: readonly string[], limitMs: number): Promise<SuiteResult> {
  const single = files.filter(hasRootHooks);
  const shared = files.filter((file) => !single.includes(file));
  const shards = [...split(shared, width()), ...single.map((file) => [file])];
  return await runWide(shards, (shard) => runShard(shard, limitMs));
}

function width(): number {
  return Math.min(availableParallelism(), shardsMax);
}

async function runWide(
  shards: readonly (readonly string[])[],
  run: (shard: readonly string[]) => Promise<SuiteResult>,
): Promise<SuiteResult> {
  const waiting = [...shards];
  const results: SuiteResult[] = [];
  const workers = Array.from({ length: width() }, async () => {
    for (let shard = waiting.shift(); shard !== undefined; shard = waiting.shift()) {
      results.push(await run(shard));
    }
  });
  await Promise.all(workers);
  return total(results);
}

/** Hooks outside of any `describe` would run around the tests of every file in the process. */
function hasRootHooks(file: string): boolean {
  return /^(before|after)(Each)?\(/m.test(readFileSync(resolve(root, file), "utf8"));
}

async function runShard(files: readonly string[], limitMs: number): Promise<SuiteResult> {
  const together = await runWorker(files, { limitMs, silenceMs });
  if (isClean(together)) return resultOf(together.reports);
  const alone = await runEach(files, { limitMs, silenceMs });
  if (alone.failures.length > 0) return alone;
  // Alone they are all well, together they are not: something is shared that should not be.
  return { ...alone, failures: [crash("several files in one process", together)] };
}

interface Limits {
  limitMs: number;
  silenceMs?: number;
}

async function runEach(files: readonly string[], limits: Limits): Promise<SuiteResult> {
  const endMs = performance.now() + limits.limitMs;
  const results: SuiteResult[] = [];
  for (const file of files) {
    const limitMs = Math.max(0, endMs - performance.now());
    const outcome = await runWorker([file], { ...limits, limitMs });
    const result = resultOf(outcome.reports);
    if (!isClean(outcome)) result.failures.push(crash(relative(root, resolve(file)), outcome));
    results.push(result);
  }
  return total(results);
}

interface Outcome {
  reports: Report[];
  ended: Ended;
}

async function runWorker(files: readonly string[], limits: Limits): Promise<Outcome> {
  const reports: Report[] = [];
  const ended = await runGroup({
    command: [process.execPath, worker, ...files.map((file) => resolve(root, file))],
    ...limits,
    onMessage: (message) => reports.push(parseReport(message)),
  });
  return { reports, ended };
}

function isClean({ reports, ended }: Outcome): boolean {
  return ended.code === 0 && reports.at(-1)?.outcome === "end";
}

function resultOf(reports: readonly Report[]): SuiteResult {
  const result: SuiteResult = { passed: 0, failures: [], skips: [] };
  for (const report of reports) {
    if (report.outcome === "passed") result.passed += 1;
    else if (report.outcome === "skipped") result.skips.push(report);
    else if (report.outcome === "failed") {
      result.failures.push({ ...report, place: relative(root, report.place) });
    }
  }
  return result;
}

function crash(place: string, { reports, ended }: Outcome): Failure {
  const how = ended.stopped ?? `ended with ${ended.signal ?? `code ${ended.code}`}`;
  const last = reports.findLast((report) => report.outcome !== "end");
  const detail =
    `Its process ${how}. A test never settled, left something open (a server, a timer, a worker), ` +
    `threw when nobody listened, or ended the process. The last test that was done: ` +
    `${last?.name ?? "none"}.\n${ended.output}`;
  return { place, name: "does not come to a clean end", detail };
}

function total(results: readonly SuiteResult[]): SuiteResult {
  return {
    passed: results.reduce((sum, result) => sum + result.passed, 0),
    failures: results.flatMap((result) => result.failures),
    skips: results.flatMap((result) => result.skips),
  };
}

/** Deals the files out in turn, so that each process gets a mixture. */
function split(files: readonly string[], count: number): string[][] {
  const shards = Array.from({ length: count }, (_, index) => {
    return files.filter((_file, at) => at % count === index);
  });
  return shards.filter((shard) => shard.length > 0);
}
