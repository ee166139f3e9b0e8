import assert from "node:assert/strict";
import {
  appendFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { DataFile, readDataFile } from "./data-file.ts";

function newPath(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "berth-data-file-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return join(folder, "cluster.json");
}

test("what was written and appended is read back, whether it was closed or not", (t) => {
  const path = newPath(t);
  const file = new DataFile(path);
  file.write({ a: 1, list: [1, 2, 3] });
  file.append([{ at: ["a"], set: 2 }]);
  file.append([
    { at: ["list"], cut: [1, 1], put: [7, 8] },
    { at: ["b"], set: { c: "newline\n" } },
  ]);
  assert.deepEqual(readDataFile(path), { a: 2, list: [1, 7, 8, 3], b: { c: "newline\n" } });
  file.close();
});

test("only its owner may read it", (t) => {
  const path = newPath(t);
  const file = new DataFile(path);
  file.write({});
  assert.equal(statSync(path).mode & 0o777, 0o600);
  file.close();
});

test("a line that was cut off by the end of the process is left out", (t) => {
  const path = newPath(t);
  const file = new DataFile(path);
  file.write({ a: 1 });
  file.append([{ at: ["a"], set: 2 }]);
  file.close();
  const line = JSON.stringify([{ at: ["a"], set: 3 }]);
  for (const torn of [line.slice(0, 5), line]) {
    appendFileSync(path, torn);
    assert.deepEqual(readDataFile(path), { a: 2 });
  }
});

test("a file without a journal, as earlier builds wrote it, is read", (t) => {
  const path = newPath(t);
  writeFileSync(path, JSON.stringify({ a: 1 }));
  assert.deepEqual(readDataFile(path), { a: 1 });
  assert.equal(readDataFile(`${path}.other`), undefined);
});

test("changes are taken until the journal is longer than all else, then it is to be written", (t) => {
  const path = newPath(t);
  const file = new DataFile(path);
  assert.ok(!file.isAppendable);
  file.write({ text: "" });
  let appended = 0;
  while (file.isAppendable) {
    file.append([{ at: ["text"], set: "x".repeat(100_000) }]);
    appended++;
  }
  assert.ok(appended > 10 && appended < 20, String(appended));
  file.write({ text: "short" });
  assert.ok(file.isAppendable);
  assert.equal(readFileSync(path, "utf8"), '{"text":"short"}\n');
  file.close();
  assert.ok(!file.isAppendable);
});
