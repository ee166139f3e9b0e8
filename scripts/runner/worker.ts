// Runs test files with Node's own runner and reports every result to the parent. A process of its
// own, because a test may crash, hang or leave things open, and must not take the others along.

import { run } from "node:test";
import { inspect } from "node:util";
import type { Report } from "./worker-report.ts";

/** Whoever says nothing for so long is about to be stopped: what it waits for is said before. */
const silenceMs = Number(process.env["BERTH_TEST_SILENCE_MS"] ?? 60_000);

/**
 * What runs at the moment. Node reports a test (`test:start`, `test:pass`) only when it is done;
 * these events come when it begins and when it ends.
 */
class Running {
  readonly #names: string[] = [];

  follow(type: string, { name }: TestData): void {
    if (type === "test:dequeue") this.#names.push(name);
    if (type !== "test:complete") return;
    const at = this.#names.lastIndexOf(name);
    if (at >= 0) this.#names.splice(at, 1);
  }

  describe(): string {
    if (this.#names.length > 0) return `Running: ${this.#names.join(" › ")}.`;
    return "All tests that began are done, and something that they left open keeps the process.";
  }
}

// If the parent is killed, nobody waits for us: end the whole group, of which we are the first.
process.once("disconnect", () => process.kill(-process.pid, "SIGKILL"));
process.channel?.unref();
await runFiles(process.argv.slice(2));

async function runFiles(files: string[]): Promise<void> {
  const trail: string[] = [];
  const running = new Running();
  const silence = setTimeout(() => {
    const open = process.getActiveResourcesInfo().join(", ");
    console.error(`Silent. ${running.describe()} Open: ${open}.`);
  }, silenceMs);
  silence.unref();
  for await (const event of run({ files, isolation: "none" })) {
    silence.refresh();
    // cast: Node's types have the stream of `run` yield `any`; these are the events it documents.
    const { type, data } = event as TestEvent;
    running.follow(type, data);
    if (type === "test:start") trail[data.nesting] = data.name;
    if (type !== "test:pass" && type !== "test:fail") continue;
    const report = reportOf(type, data, trail.slice(0, data.nesting));
    if (report !== undefined) send(report);
  }
  send({ outcome: "end" });
}

interface TestEvent {
  type: string;
  data: TestData;
}

interface TestData {
  name: string;
  nesting: number;
  file?: string;
  line?: number;
  skip?: string | boolean;
  todo?: string | boolean;
  details: { type?: string; error?: Error };
}

function reportOf(
  type: "test:pass" | "test:fail",
  data: TestData,
  above: readonly string[],
): Report | undefined {
  const { skip, todo, details } = data;
  const name = [...above, data.name].join(" › ");
  const place = describePlace(data);
  if (isTrue(skip)) return { outcome: "skipped", name, reason: reasonOf(skip, "no reason given") };
  if (isTrue(todo)) return { outcome: "skipped", name, reason: reasonOf(todo, "to be done") };
  if (type === "test:fail") return failureOf(details.error, name, place);
  if (details.type === "suite") return undefined;
  // Node counts a file that defines no test as one that passed.
  if (data.name === data.file) {
    const detail = "A test file without tests proves nothing.";
    return { outcome: "failed", name: "defines no test", place, detail };
  }
  return { outcome: "passed", name };
}

function failureOf(error: Error | undefined, name: string, place: string): Report | undefined {
  // The subtest that failed has been reported: its parents add nothing.
  if (hasType(error, "subtestsFailed")) return undefined;
  const cause = error?.cause ?? error;
  const detail = cause instanceof Error ? textOf(cause) : inspect(cause);
  return { outcome: "failed", name, place, detail };
}

function hasType(error: Error | undefined, type: string): boolean {
  return error !== undefined && "failureType" in error && error.failureType === type;
}

/** The error without the frames of Node itself, which say nothing about us. */
function textOf(error: Error): string {
  const lines = inspect(error, { depth: 4 }).split("\n");
  return lines.filter((line) => !/^\s+at .*\(?node:internal\//.test(line)).join("\n");
}

function describePlace(data: TestData): string {
  return `${data.file ?? "?"}:${data.line ?? 0}`;
}

function isTrue(mark: string | boolean | undefined): mark is string | true {
  return mark !== undefined && mark !== false;
}

function reasonOf(mark: string | true, otherwise: string): string {
  return typeof mark === "string" && mark !== "" ? mark : otherwise;
}

function send(report: Report): void {
  process.send?.(report);
}
