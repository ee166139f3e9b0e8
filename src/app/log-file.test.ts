import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createLogFile } from "./log-file.ts";

const folder = mkdtempSync(join(tmpdir(), "berth-log-"));
after(() => rmSync(folder, { recursive: true }));

test("the log file goes on after a restart, is private, and never grows beyond its bound", () => {
  const path = join(folder, "berth.log");
  createLogFile(path)("first");
  const write = createLogFile(path);
  write("second");
  assert.equal(readFileSync(path, "utf8"), "first\nsecond\n");
  assert.equal(statSync(path).mode & 0o077, 0);
  for (let i = 0; i < 3_000; i++) write("x".repeat(1_000));
  assert.ok(statSync(path).size <= 1024 * 1024 + 1_001);
  assert.ok(statSync(`${path}.1`).size <= 1024 * 1024 + 1_001);
});

test("a disk that refuses takes nobody down", () => {
  createLogFile(join(folder, "nowhere", "berth.log"))("lost");
});
