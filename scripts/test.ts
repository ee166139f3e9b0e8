import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { killAllGroups } from "./runner/group.ts";
import { closing, type RunResult, suiteLine } from "./runner/report.ts";
import { exists, runSuite } from "./runner/run-suite.ts";
import { readAllowedSkips } from "./runner/skips.ts";
import type { Failure, Need, Suite, SuiteResult } from "./runner/suite.ts";
import { suites } from "./suites.ts";

/** Where every component has to be real: then it is brought here, and a skip is a failure. */
const requiresReal = process.env["BERTH_REQUIRE_REAL"] === "1";

/** `npm test`: every suite, or the named ones. Returns 1 if anything failed. */
export async function main(args: readonly string[]): Promise<number> {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { list: { type: "boolean" }, fast: { type: "boolean" } },
    allowPositionals: true,
  });
  const present = suites.filter(exists);
  if (values.list) return list(present);
  const unknown = positionals.filter((name) => !present.some((suite) => suite.name === name));
  if (unknown.length > 0) {
    console.error(`There is no suite named ${unknown.join(", ")}. There are:`);
    list(present);
    return 1;
  }
  const chosen = present.filter(({ name, fast }) => {
    return positionals.length > 0 ? positionals.includes(name) : !values.fast || fast;
  });
  const isAsked = positionals.length > 0;
  return await runAll(chosen, { withLong: requiresReal || isAsked });
}

interface RunOptions {
  /** Whether suites run that take too long for every day. */
  readonly withLong: boolean;
}

function list(present: readonly Suite[]): number {
  for (const { name, proves, minutes, needs } of present) {
    const needed = needs ? `; needs ${needs.map((need) => need.name).join(", ")}` : "";
    console.log(`${name.padEnd(12)} ${proves} (${minutes} min${needed})`);
  }
  return 0;
}

async function runAll(chosen: readonly Suite[], options: RunOptions): Promise<number> {
  const run: RunResult = { suites: [] };
  const close = (): number => {
    const { lines, failed } = closing(run, requiresReal ? readAllowedSkips() : undefined);
    console.log(`\n${lines.join("\n")}`);
    return failed > 0 ? 1 : 0;
  };
  const interrupt = (): void => {
    killAllGroups();
    close();
    process.exit(130);
  };
  process.once("SIGINT", interrupt).once("SIGTERM", interrupt);
  for (const suite of chosen) {
    showProgress(`${suite.name} …`);
    const repeat = chooseFor(suite);
    const startMs = performance.now();
    const unprovided = await provideFor(suite, options);
    const providedMs = performance.now() - startMs;
    const result = unprovided ?? (await runSuite(suite));
    const tookMs = performance.now() - startMs - providedMs;
    run.suites.push({ suite, result });
    showProgress("");
    console.log(suiteLine(suite, result, { tookMs, providedMs }));
    if (repeat !== undefined) console.log(`${"".padEnd(12)} the same again: ${repeat}`);
  }
  return close();
}

/** Chooses what a suite leaves to chance, for its processes; answers how to have the same again. */
function chooseFor({ name, random }: Suite): string | undefined {
  if (random === undefined) return undefined;
  const value = process.env[random] ?? String(randomInt(1, 900_000_000));
  process.env[random] = value;
  return `${random}=${value} npm test -- ${name}`;
}

/** Provides what a suite needs. Returns its result where it cannot run or is not to. */
async function provideFor(
  suite: Suite,
  { withLong }: RunOptions,
): Promise<SuiteResult | undefined> {
  if (suite.long === true && !withLong) {
    return skipped(suite, `takes ${suite.minutes} minutes: npm test -- ${suite.name}`);
  }
  for (const need of suite.needs ?? []) {
    const failure = requiresReal ? await provide(need) : undefined;
    if (failure !== undefined) return { passed: 0, failures: [failure], skips: [] };
    const reason = need.missing();
    if (reason !== undefined) return skipped(suite, reason);
  }
  return undefined;
}

async function provide(need: Need): Promise<Failure | undefined> {
  try {
    if (need.missing() !== undefined) await need.provide?.();
    return undefined;
  } catch (error) {
    const detail = error instanceof Error ? error.message : String(error);
    return { place: "scripts/real", name: `provide ${need.name}`, detail };
  }
}

function skipped({ name }: Suite, reason: string): SuiteResult {
  return { passed: 0, failures: [], skips: [{ name, reason }] };
}

/** On a terminal only: what is running now, to be overwritten by what it came to. */
function showProgress(text: string): void {
  if (process.stdout.isTTY) process.stdout.write(`\r\u001B[K${text}`);
}

if (import.meta.main) process.exitCode = await main(process.argv.slice(2));
