import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { clockSkew } from "./clock-skew.ts";
import { dataFolder, prepareDataFolder } from "./data-folder.ts";
import { readIfPresent, writePrivately } from "./files.ts";
import { createLog, type LogLevel } from "./log.ts";
import { loadSecretsKey, parseSecretsKey } from "./secrets-key.ts";
import { systemClock, systemRandom } from "./system.ts";

function temporaryFolder(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), "berth-app-"));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

describe("a private file", () => {
  test("is its owner's alone, replaced in one step, and leaves nothing else behind", (t) => {
    const folder = temporaryFolder(t);
    const path = join(folder, "key");
    assert.equal(readIfPresent(path), undefined);
    writePrivately(path, "one");
    writePrivately(path, "two");
    assert.equal(readFileSync(path, "utf8"), "two");
    assert.equal(statSync(path).mode & 0o777, 0o600);
    assert.deepEqual(readdirSync(folder), ["key"]);
  });
});

describe("the key of the Secrets", () => {
  test("is made once, and then read", (t) => {
    const folder = dataFolder(join(temporaryFolder(t), "data"));
    prepareDataFolder(folder);
    const made = loadSecretsKey(folder, systemRandom);
    assert.equal(made.length, 32);
    assert.deepEqual(Buffer.from(loadSecretsKey(folder, systemRandom)), Buffer.from(made));
    assert.equal(statSync(folder.path).mode & 0o077, 0);
  });

  test("is never made anew where there are objects that need the old one", (t) => {
    const folder = dataFolder(temporaryFolder(t));
    writeFileSync(folder.database, "");
    assert.throws(() => loadSecretsKey(folder, systemRandom), /secrets\.key is missing/);
    assert.equal(readIfPresent(folder.secretsKey), undefined);
  });

  test("is refused, with the name of its file, if it is not one", () => {
    assert.throws(() => parseSecretsKey("/x/secrets.key", "nonsense"), /\/x\/secrets\.key/);
  });
});

describe("the log", () => {
  const logged = (level: LogLevel, ...args: Parameters<ReturnType<typeof createLog>>): string[] => {
    const lines: string[] = [];
    createLog({ write: (line) => void lines.push(line), nowMs: () => 0, level })(...args);
    return lines;
  };

  test("writes one line: time, level, sentence, facts", () => {
    const fields = { path: "/a b", count: 3, nothing: undefined };
    const [line] = logged("info", "warn", "the disk is full", fields);
    assert.equal(line, '1970-01-01T00:00:00.000Z warn the disk is full path="/a b" count=3');
  });

  test("leaves out what is below its level", () => {
    assert.deepEqual(logged("warn", "info", "started"), []);
  });

  test("lets no foreign text make a second line, or fill the disk", () => {
    const [line = ""] = logged("info", "error", "it said", { cause: `a\nb ${"x".repeat(10_000)}` });
    assert.doesNotMatch(line, /\n/);
    assert.ok(line.length < 2_200);
  });
});

describe("the system's clock and randomness", () => {
  test("are wrong by as much as a file says, and only where there is one", (t) => {
    const path = join(temporaryFolder(t), "skew");
    const time = { nowMs: 0 };
    const skewMs = clockSkew(path, () => time.nowMs);
    assert.equal(skewMs(), 0);
    writeFileSync(path, "-3600000\n");
    time.nowMs = 1_000;
    assert.equal(skewMs(), -3_600_000);
    writeFileSync(path, "half of a num");
    time.nowMs = 2_000;
    assert.equal(skewMs(), -3_600_000, "what is no number changes nothing");
    assert.equal(clockSkew(undefined, () => 0)(), 0);
  });

  test("go forward, and can be called off", async () => {
    const before = systemClock.monotonicMs();
    const calledOff = systemClock.after(0, () => assert.fail("it was called off"));
    calledOff();
    await new Promise<void>((resolve) => {
      const keepAlive = setInterval(() => undefined, 1_000);
      systemClock.after(1, () => {
        clearInterval(keepAlive);
        resolve();
      });
    });
    assert.ok(systemClock.monotonicMs() > before);
  });

  test("give numbers below one, bytes by the count and UUIDs", () => {
    for (let i = 0; i < 100; i++) {
      const number = systemRandom.number();
      assert.ok(number >= 0 && number < 1);
    }
    assert.equal(systemRandom.bytes(5).length, 5);
    assert.match(
      systemRandom.uuid(),
      /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    );
  });
});
