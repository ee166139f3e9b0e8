import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, test } from "node:test";
import { runAlone, runBeside, runShared } from "../scripts/runner/run-tests.ts";
import type { SuiteResult } from "../scripts/runner/suite.ts";
import { isGone } from "./process-gone.ts";

// The runner itself, with real files that go wrong in every way.

const folder = mkdtempSync(join(tmpdir(), "berth-runner-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const head = 'import { test } from "node:test";\n';
const fine = write("fine", 'test("is well", () => {});');
const limitMs = 30_000;

function write(name: string, body: string): string {
  const path = join(folder, `${name}.test.ts`);
  writeFileSync(path, `${head}${body}\n`);
  return path;
}

function summary({ passed, failures, skips }: SuiteResult): unknown {
  return {
    passed,
    failed: failures.map(({ name, place }) => `${basename(place)} ${basename(name)}`),
    skipped: skips.map(({ name, reason }) => `${name}: ${reason}`),
  };
}

const mixed = write(
  "mixed",
  `import { describe } from "node:test";
   describe("group", () => {
     test("passes", () => {});
     test("fails", () => { throw new Error("broken"); });
     test("skips", { skip: "no moon" }, () => {});
   });
   test("parent", async (t) => { await t.test("child fails", () => { throw new Error("x"); }); });
   test("later", { todo: "when there is time" }, () => { throw new Error("y"); });`,
);

for (const [how, run] of Object.entries({ runShared, runAlone, runBeside })) {
  test(`${how} counts each test once, names failures and gives reasons for skips`, async () => {
    const result = await run([mixed, fine], limitMs);
    assert.deepEqual(summary(result), {
      passed: 2,
      failed: ["mixed.test.ts:5 group › fails", "mixed.test.ts:8 parent › child fails"],
      skipped: ["group › skips: no moon", "later: when there is time"],
    });
    assert.match(result.failures[0]?.detail ?? "", /Error: broken\n\s+at .*mixed\.test\.ts:5/);
  });
}

const faults: { reason: string; body: string; failed: RegExp }[] = [
  {
    reason: "leaves",
    body: 'test("a", () => process.exit(0));',
    failed: /leaves\.test\.ts .*ended with code 0/,
  },
  { reason: "has no test", body: "test.name;", failed: /no-test\.test\.ts:1 defines no test/ },
  { reason: "crashes", body: 'test("a", () => process.abort());', failed: /crashes\.test\.ts/ },
  { reason: "cannot be loaded", body: 'import "./none.ts";', failed: /loaded\.test\.ts/ },
  {
    reason: "throws when nobody listens",
    body:
      'test("a", () => void setTimeout(() => { throw new Error("late"); }, 1));\n' +
      'test("b", () => new Promise((resolve) => setTimeout(resolve, 50)));',
    failed: /listens\.test\.ts/,
  },
];

for (const { reason, body, failed } of faults) {
  test(`a file that ${reason} is named, and hides no other file`, async () => {
    const bad = write(reason.replaceAll(" ", "-"), body);
    const result = await runShared([bad, fine], limitMs);
    assert.ok(result.passed >= 1, "the other file has passed");
    const told = result.failures.map(({ place, name, detail }) => `${place} ${name} ${detail}`);
    assert.match(told.join("\n"), failed);
  });
}

test("hooks outside of any group stay with their file", async () => {
  const hooks = 'import { beforeEach } from "node:test";\n';
  const bad = write(
    "hooks",
    `${hooks}beforeEach(() => { throw new Error("hook"); });\ntest("a", () => {});`,
  );
  const others = ["x", "y", "z"].map((name) => write(name, 'test("is well", () => {});'));
  const result = await runShared([...others, bad], limitMs);
  assert.deepEqual([result.passed, result.failures.length], [3, 1]);
});

test("a file that never ends is stopped and named", async () => {
  const bad = write(
    "endless",
    'import net from "node:net";\ntest("a", () => void net.createServer().listen(0));',
  );
  const { failures } = await runShared([bad], 1500);
  assert.match(
    failures.map(({ place, name }) => `${place} ${name}`).join("\n"),
    /endless\.test\.ts/,
  );
});

const silent: { reason: string; body: string; said: RegExp }[] = [
  {
    reason: "hangs in a test",
    body:
      'import { describe } from "node:test";\ntest("before", () => {});\n' +
      'describe("group", () => { test("hangs", () => new Promise((r) => setTimeout(r, 60_000))); });',
    said: /Silent\. Running: group › hangs\. Open: .*Timeout/,
  },
  {
    reason: "leaves a server open",
    body: 'import net from "node:net";\ntest("a", () => void net.createServer().listen(0));',
    said: /Silent\. All tests that began are done.* Open: .*TCPServerWrap/,
  },
];

for (const { reason, body, said } of silent) {
  test(`what a file that ${reason} waits for is said before it is stopped`, async (t) => {
    process.env["BERTH_TEST_SILENCE_MS"] = "500";
    t.after(() => delete process.env["BERTH_TEST_SILENCE_MS"]);
    const bad = write(reason.replaceAll(" ", "-"), body);
    const { failures } = await runAlone([bad], 5_000);
    assert.match(failures.map(({ detail }) => detail).join("\n"), said);
  });
}

test("nothing that a test has started outlives it", async () => {
  const bad = write(
    "litter",
    `import { spawn } from "node:child_process";
     test("a", () => {
       const child = spawn("sleep", ["300"], { stdio: "ignore" });
       child.unref();
       throw new Error("pid " + child.pid);
     });`,
  );
  const { failures } = await runAlone([bad], limitMs);
  const pid = Number(/pid (\d+)/.exec(failures[0]?.detail ?? "")?.[1]);
  assert.ok(pid > 0);
  assert.ok(await isGone(pid));
});
