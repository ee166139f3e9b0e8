import { run } from "node:test";
import { fileURLToPath } from "node:url";
import { servesTests } from "../../scripts/tidy/project.ts";
import type { TestEnd } from "./test-end.ts";

// Runs the tests of one file, argument 1, and prints how each ended, one line of JSON each. Further
// arguments are patterns: only tests whose names match one. A test counts as refuted where the test
// itself, or what serves tests, threw: a program that falls over when broken proves nothing.

const root = fileURLToPath(new URL("../../", import.meta.url));

const [, , file = "", ...patterns] = process.argv;
const testNamePatterns = patterns.map((pattern) => new RegExp(pattern));
const events = run({
  files: [file],
  isolation: "none",
  ...(patterns.length > 0 ? { testNamePatterns } : {}),
});

const names: string[] = [];
for await (const { type, data } of events) {
  if (type === "test:start") {
    names.length = data.nesting;
    names.push(data.name);
  }
  if (type !== "test:pass" && type !== "test:fail") continue;
  if (data.details.type === "suite") continue;
  const name = [...names.slice(0, data.nesting), data.name].join(" > ");
  const end = data.skip === undefined ? endOf(data.details) : "skipped";
  process.stdout.write(`${JSON.stringify({ name, end } satisfies TestEnd)}\n`);
}

function endOf(details: { readonly error?: Error }): TestEnd["end"] {
  if (details.error === undefined) return "passed";
  const { cause } = details.error;
  if (!(cause instanceof Error)) return "fell over";
  return cause.name === "AssertionError" || isByTest(cause) ? "refuted" : "fell over";
}

/** Whether the first frame of ours is in a test, or in what only tests use. */
function isByTest({ stack = "" }: Error): boolean {
  const files = [...stack.matchAll(/(?:file:\/\/)(\/[^\s:)]+)/g)].map(([, path = ""]) => path);
  const first = files.find((path) => path.startsWith(root) && !path.includes("node_modules"));
  return first !== undefined && servesTests(first.slice(root.length));
}
