import assert from "node:assert/strict";
import { test } from "node:test";
import { tidy } from "./tidy.ts";

/** A small repository in which nothing is wrong. Samples are added to it or replace parts. */
const sound: Record<string, string> = {
  "package.json": '{ "dependencies": { "yaml": "1" }, "devDependencies": { "fast-check": "1" } }',
  "src/cli/main.ts": 'import { open } from "../store/index.ts";\nexport const main = open;\n',
  "src/cli/README.md": "# cli\n",
  "src/store/index.ts": 'export { open } from "./open.ts";\n',
  "src/store/open.ts": 'import { sum } from "../kernel/sum.ts";\nexport const open = sum;\n',
  "src/store/open.test.ts": 'import { open } from "./open.ts";\nopen();\n',
  "src/store/README.md": "# store\n",
  "src/kernel/sum.ts": "export function sum(): number {\n  return 1;\n}\n",
  "src/kernel/README.md": "# kernel\n",
};

function findings(changes: Record<string, string>): string[] {
  const files = Object.entries({ ...sound, ...changes })
    .filter(([, text]) => text !== "(none)")
    .map(([path, text]) => ({ path, text }));
  return tidy(files).map(({ path, line, rule }) => `${path}:${line} ${rule}`);
}

/** The program, with one more import so that the sample is part of it. */
function using(path: string): Record<string, string> {
  const imports = `import "../${path.replace(/^src\//, "")}";\n`;
  return { "src/cli/main.ts": imports + sound["src/cli/main.ts"] };
}

const open = sound["src/store/open.ts"] ?? "";
const x = "x".repeat(101);
// So that this file does not contain what it shows to be forbidden.
const [slash, dot, dash, colon, nothing] = ["/", ".", "-", ":", ""];

const samples: { reason: string; files: Record<string, string>; expected: string[] }[] = [
  { reason: "nothing in a sound repository", files: {}, expected: [] },
  {
    reason: "a room that imports one which it must not know",
    files: {
      "src/kernel/sum.ts": `import { a } from "../store/index.ts";\nexport const sum = a;\n`,
    },
    expected: ["src/kernel/sum.ts:1 direction", "src/store/index.ts:1 cycles"],
  },
  {
    reason: "a driver that imports another driver",
    files: {
      ...using("src/drivers/a/index.ts"),
      "src/drivers/a/index.ts": 'import { b } from "../b/index.ts";\nb();\n',
      "src/drivers/b/index.ts": "export const b = 1;\n",
      "src/drivers/a/README.md": "",
      "src/drivers/b/README.md": "",
    },
    expected: ["src/drivers/a/index.ts:1 direction"],
  },
  {
    reason: "the simulator where the program imports it, and not where a test does",
    files: {
      "src/sim/index.ts": "export const sim = 1;\n",
      "src/sim/README.md": "",
      "src/store/open.ts": `import { sim } from "../sim/index.ts";\n${open}`,
      "src/store/open.test.ts": `import { sim } from "../sim/index.ts";\nsim();\n`,
    },
    expected: ["src/store/open.ts:1 direction"],
  },
  {
    reason: "a room that is entered by the window, even if by a test",
    files: {
      "src/cli/main.ts": 'import { open } from "../store/open.ts";\nexport const main = open;\n',
      "src/api/kind.test.ts": 'import { open } from "../store/open.ts";\nopen();\n',
      "src/api/README.md": "",
    },
    expected: [
      "src/api/kind.test.ts:1 door",
      "src/cli/main.ts:1 door",
      "src/store/index.ts:1 dead-files",
    ],
  },
  {
    reason: "two files that import each other, if only for a type",
    files: {
      "src/store/open.ts": `import type { B } from "./b.ts";\n${open}export type A = B;\n`,
      "src/store/b.ts": 'import type { A } from "./open.ts";\nexport type B = A;\n',
    },
    expected: ["src/store/open.ts:1 cycles"],
  },
  {
    reason: "packages: undeclared, without node:, for development only, in a pure room",
    files: {
      "src/store/open.ts": `import "left-pad";\nimport "fs";\nimport "fast-check";\n${open}`,
      "src/store/open.test.ts": 'import "fast-check";\nimport "@scope/name/part";\n',
      "src/kernel/sum.ts": 'import "node:fs";\nimport "yaml";\nexport const sum = 1;\n',
    },
    expected: [
      "src/kernel/sum.ts:1 packages",
      "src/kernel/sum.ts:2 packages",
      "src/store/open.test.ts:2 packages",
      "src/store/open.ts:1 packages",
      "src/store/open.ts:2 packages",
      "src/store/open.ts:3 packages",
    ],
  },
  {
    reason: "exports and imports that hide what they are",
    files: {
      "src/store/index.ts": 'export * from "./open.ts";\n',
      "src/store/open.ts": `${open}export default open;\nawait import(name);\n`,
    },
    expected: [
      "src/store/index.ts:1 plain-imports",
      "src/store/open.ts:3 plain-imports",
      "src/store/open.ts:4 plain-imports",
    ],
  },
  {
    reason: "time, chance and environment that nobody passed in",
    files: {
      "src/store/open.ts": [
        'import { setTimeout as wait } from "node:timers/promises";',
        "Date.now(); new Date(); new Date(5);",
        "Math.random();",
        "setTimeout(f); socket.setTimeout(5); globalThis.setInterval(f); a = { setTimeout: 1 };",
        'import { randomUUID } from "node:crypto";',
        "process.env.A; process.exit(1); performance.now(); AbortSignal.timeout(1);",
        "// Date.now() in a comment, and `Math.random()` too",
        'const text = "process.env";',
        open,
      ].join("\n"),
      "src/store/open.test.ts": 'import "./open.ts";\nDate.now();\n',
    },
    expected: [
      "src/store/open.ts:1 injected",
      "src/store/open.ts:1 injected",
      "src/store/open.ts:2 injected",
      "src/store/open.ts:2 injected",
      "src/store/open.ts:3 injected",
      "src/store/open.ts:4 injected",
      "src/store/open.ts:4 injected",
      "src/store/open.ts:5 injected",
      "src/store/open.ts:6 injected",
      "src/store/open.ts:6 injected",
      "src/store/open.ts:6 injected",
      "src/store/open.ts:6 injected",
    ],
  },
  {
    reason: "effects, retries and deadlines of a controller that are not the engine's",
    files: {
      ...using("src/controllers/vm/index.ts"),
      "src/controllers/vm/index.ts": [
        'import { nextAttempt } from "../../runtime/index.ts";',
        "await connection.driver.begin(operation, fence);",
        "await driver.look(task); await driver.recall(claim, 0); await vmDriver.cancel?.(task);",
        'await driver["begin"](operation, fence); await driver.observe(claim, {});',
        "const leftMs = Date.parse(operation.deadline ?? operation.since) - nowMs;",
        "memory.begin(holder); page.look(); Date.parse(status.waitingFor?.since);",
        "// driver.begin(operation) in a comment",
        'const text = "driver.begin(operation)";',
        "nextAttempt(leftMs, text);",
        "const { begin } = driver;",
        "const { look: see, observe } = turn.connection.driver;",
        "const hv = turn.driver; await hv.begin(operation, fence);",
        "function act({ driver: of }: Turn) { return of.recall(claim, 0); }",
        "function ask(asked: HypervisorDriver) { return asked.cancel?.(task); }",
        "function tell(told: Pick<HypervisorDriver, 'look'>) { return told.look(task); }",
        "const again = hv; await again.look(task);",
        "const ageMs = nowMs - Date.parse(record.since);",
        "const { since: at } = record; const oldMs = Date.parse(at);",
        "const dueMs = Date.parse(failure.nextRetryAt) - nowMs;",
        "const due = new Date(failure.nextRetryAt);",
        "const isDue = failure.nextRetryAt <= now;",
        "const next = failure.nextRetryAt; const nextMs = Date.parse(next);",
        "const told = { since: claim.reservedAt }; Date.parse(claim.reservedAt);",
        "const isLast = failure.nextRetryAt === undefined; const { observe: o } = driver;",
        "const other = { begin: page.begin }; const { begin: b } = memory; page.look();",
      ].join("\n"),
      "src/controllers/vm/README.md": "",
      "src/controllers/README.md": "",
      "src/controllers/vm/act.test.ts": 'import "./index.ts";\ndriver.begin(operation);\n',
      "src/runtime/index.ts": "export const nextAttempt = 1;\n",
      "src/runtime/README.md": "",
    },
    expected: [
      "src/controllers/vm/index.ts:1 engine-only",
      "src/controllers/vm/index.ts:2 engine-only",
      "src/controllers/vm/index.ts:3 engine-only",
      "src/controllers/vm/index.ts:3 engine-only",
      "src/controllers/vm/index.ts:3 engine-only",
      "src/controllers/vm/index.ts:4 engine-only",
      "src/controllers/vm/index.ts:5 engine-only",
      ...Array.from({ length: 13 }, (_, index) => {
        return `src/controllers/vm/index.ts:${index + 10} engine-only`;
      }),
    ],
  },
  {
    reason: "nothing of that in the engine itself, in what tests use and in the breaker",
    files: Object.fromEntries(
      [
        "src/controllers/operations/perform.ts",
        "src/controllers/hypervisor/breaker.ts",
        "src/controllers/testing/world.ts",
      ].flatMap((path) => [
        [path, "driver.begin(operation);\n"],
        [path.replace(/[^/]+$/, "README.md"), ""],
      ]),
    ),
    expected: [
      "src/controllers/hypervisor/breaker.ts:1 dead-files",
      "src/controllers/operations/perform.ts:1 dead-files",
      "src/controllers/testing/world.ts:1 dead-files",
    ],
  },
  {
    reason: "casts, but not what only looks like one",
    files: {
      "src/store/open.ts": [
        'import { sum as add } from "../kernel/sum.ts";',
        "const a = b as C;",
        "const d = [1] as const;",
        "// cast: the parser has checked it.",
        "const e = f() as G;",
        "const h = i as J; // cast: for the same reason.",
        "// cast: this reason is long and",
        "// takes two lines.",
        "const k = l as M;",
        "type N = { [Key in keyof O as Upper<Key>]: 1 };",
        "export { add as open };",
        "const as = 1; p.as(2); const q = { as: 3 };",
        "const r = `${s as T}`;",
        "const u = { v } as unknown;",
      ].join("\n"),
      "src/store/open.test.ts": 'import { open } from "./open.ts";\nopen as never;\n',
    },
    expected: [
      "src/store/open.ts:2 casts",
      "src/store/open.ts:13 casts",
      "src/store/open.ts:14 casts",
    ],
  },
  {
    reason: "exemptions without a rule or a reason",
    files: {
      "src/store/open.ts": [
        "// oxlint-disable-next-line",
        "// oxlint-disable-next-line no-console",
        "// oxlint-disable-next-line no-console, no-shadow -- both are fine here",
        "// oxlint-disable-next-line no-console -- people read this",
        open,
      ].join("\n"),
    },
    expected: [
      "src/store/open.ts:1 exemptions",
      "src/store/open.ts:2 exemptions",
      "src/store/open.ts:3 exemptions",
    ],
  },
  {
    reason: "guards without a literal id, with a bad or a used one, and with no test that notices",
    files: {
      "src/kernel/guard.ts":
        "export function guard(): void {}\nexport function precondition() {}\n",
      "src/store/open.ts": [
        'import { guard, precondition } from "../kernel/guard.ts";',
        'if (!guard("known-id", sum === (1))) throw 1;',
        "if (!guard(id, sum === 1)) throw 1;",
        "if (!guard(`other-id`, sum === 1)) throw 1;",
        'if (!guard("Bad_Id", sum === 1)) throw 1;',
        'send({ digest: precondition("known-id", sum) });',
        'send({ digest: precondition("new-id", sum) });',
        'other.guard("not-a-guard", 1); // guard("in-a-comment", 1)',
        open,
      ].join("\n"),
      "src/cli/guard.ts":
        'import { guard } from "../kernel/sum.ts";\nguard("of-another-file", 1);\n',
      "src/store/open.test.ts":
        'import { guard } from "../kernel/guard.ts";\nguard("in-a-test", true);\n',
      "src/cli/main.ts": `import "./guard.ts";\n${sound["src/cli/main.ts"]}`,
      "test/mutants/guards.json": '[\n  { "id": "known-id" },\n  { "id": "gone" }\n]\n',
    },
    expected: [
      "src/store/open.ts:3 guards",
      "src/store/open.ts:4 guards",
      "src/store/open.ts:5 guards",
      "src/store/open.ts:6 guards",
      "src/store/open.ts:7 guards",
      "test/mutants/guards.json:3 guards",
    ],
  },
  {
    reason: "files that nothing uses, and files that only tests use",
    files: {
      "src/store/dead.ts": 'import { deader } from "./deader.ts";\ndeader();\n',
      "src/store/deader.ts": "export const deader = 1;\n",
      "src/store/tested.ts": "export const tested = 1;\n",
      "src/store/testing/fake.ts": "export const fake = 1;\n",
      "src/store/open.test.ts":
        'import { tested } from "./tested.ts";\nimport "./testing/fake.ts";\n',
    },
    expected: [
      "src/store/dead.ts:1 dead-files",
      "src/store/tested.ts:1 dead-files",
      "src/store/testing/fake.ts:1 unused-exports",
    ],
  },
  {
    reason: "no fault in a worker that is named by its URL",
    files: {
      "src/store/open.ts": `new Worker(new URL("./worker.ts", import.meta.url));\n${open}`,
      "src/store/worker.ts": "work();\n",
    },
    expected: [],
  },
  {
    reason: "a fake in the program",
    files: {
      "src/store/open.ts": `import { fake } from "./testing/fake.ts";\n${open}fake();\n`,
      "src/store/testing/fake.ts": "export const fake = 1;\n",
    },
    expected: ["src/store/open.ts:1 pretence"],
  },
  {
    reason: "an export that nobody imports",
    files: { "src/store/open.ts": `${open}export function more(): void {}\nexport type T = 1;\n` },
    expected: ["src/store/open.ts:3 unused-exports"],
  },
  {
    reason: "files that are too long, by what they are",
    files: {
      "src/store/open.ts": open + "\n".repeat(399),
      "src/store/open.test.ts": "\n".repeat(801),
      ...using("src/kernel/wire.generated.ts"),
      "src/kernel/wire.generated.ts": "\n".repeat(5000),
    },
    expected: ["src/store/open.test.ts:801 file-size", "src/store/open.ts:401 file-size"],
  },
  {
    reason: "lines that are too long, unless for an address or a text",
    files: {
      "src/store/open.ts": `// ${x}\n// see https://${x}\nconst a = "${x}";\n/${x}/;\n${open}`,
    },
    expected: ["src/store/open.ts:1 columns"],
  },
  {
    reason: "words that do not belong here, in any file",
    files: {
      "docs/b.md": `cd ${slash}Users/anna/berth, not data/Users/anna\n`,
      "docs/c.md": `https:${slash}/registry${dot}npmjs.org\n`,
      "docs/d.md": `FIX${nothing}ME: later\n`,
      "docs/e.md": `@ts${dash}ignore\n`,
      "package-lock.json": `{\n  "resolved"${colon} "https://example.com"\n}\n`,
    },
    expected: [
      "docs/b.md:1 words",
      "docs/c.md:1 words",
      "docs/d.md:1 words",
      "docs/e.md:1 words",
      "package-lock.json:2 words",
    ],
  },
  {
    reason: "a room without a README, and one that says too much",
    files: { "src/store/README.md": "(none)", "src/kernel/README.md": "a\n".repeat(61) },
    expected: ["src/kernel/README.md:61 readmes", "src/store/README.md:1 readmes"],
  },
  {
    reason: "code outside of any room",
    files: {
      "src/loose.test.ts": "",
      "src/helpers/a.test.ts": "",
      "src/helpers/README.md": "",
    },
    expected: ["src/helpers/a.test.ts:1 homes", "src/loose.test.ts:1 homes"],
  },
];

for (const { reason, files, expected } of samples) {
  test(`finds ${reason}`, () => {
    assert.deepEqual(findings(files).toSorted(), expected.toSorted());
  });
}
