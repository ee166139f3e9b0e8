import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createLog, joinLogs, type LogFormat } from "./log.ts";

function open(format?: LogFormat): { log: ReturnType<typeof createLog>; lines: string[] } {
  const lines: string[] = [];
  const write = (line: string): void => void lines.push(line);
  return { lines, log: createLog({ write, nowMs: () => 0, level: "info", format }) };
}

describe("the log", () => {
  test("is one line for people, with the facts after the sentence", () => {
    const { log, lines } = open();
    log("warn", "has\nfailed", {
      object: "VirtualMachine default/a",
      attempts: 2,
      task: undefined,
    });
    log("debug", "not told");
    assert.deepEqual(lines, [
      '1970-01-01T00:00:00.000Z warn has failed object="VirtualMachine default/a" attempts=2',
    ]);
  });

  test("is one object for programs, whose own fields nothing can replace", () => {
    const { log, lines } = open("json");
    log("info", 'a "step"', { step: "Create", level: "debug", isDone: true });
    assert.deepEqual(JSON.parse(lines[0] ?? ""), {
      time: "1970-01-01T00:00:00.000Z",
      level: "info",
      message: 'a "step"',
      step: "Create",
      _level: "debug",
      isDone: true,
    });
  });

  test("has no secrets in it, even where somebody put one", () => {
    for (const format of ["text", "json"] as const) {
      const { log, lines } = open(format);
      log("error", "Bearer abcdef", { error: "https://u:hunter2@host/x" });
      assert.doesNotMatch(lines.join(), /abcdef|hunter2/);
    }
  });

  test("can go to several places", () => {
    const one = open();
    const other = open("json");
    joinLogs(one.log, other.log)("info", "x");
    assert.deepEqual([one.lines.length, other.lines.length], [1, 1]);
  });
});
