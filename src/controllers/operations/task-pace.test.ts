import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import type { OperationRecord } from "./record.ts";
import { TaskPace, unconfirmedMs } from "./task-pace.ts";

/** Looks at a task that takes so long until it is over. */
function lookAt(pace: TaskPace, takesMs: number): { looks: number; lateMs: number } {
  let ranMs = 0;
  let runningMs: number | undefined;
  for (let looks = 1; ; looks++) {
    ranMs += pace.waitMs("Create", ranMs);
    if (ranMs >= takesMs) {
      pace.ended("Create", { ranMs, runningMs });
      return { looks, lateMs: ranMs - takesMs };
    }
    runningMs = ranMs;
  }
}

const durationMs = fc.integer({ min: 50, max: 120_000 });

describe("the pace of looking at tasks", () => {
  test("a task that takes as long as the others is looked at few times, and noticed soon", () => {
    for (const takesMs of [40, 180, 900]) {
      const pace = new TaskPace();
      for (let index = 0; index < 40; index++) lookAt(pace, takesMs);
      const { looks, lateMs } = lookAt(pace, takesMs);
      assert.ok(looks <= 5, `${looks} looks`);
      assert.ok(lateMs <= Math.max(25, takesMs / 12), `${lateMs} ms late`);
    }
  });

  test("no end is noticed more than a second late", () => {
    fc.assert(
      fc.property(fc.array(durationMs, { maxLength: 12 }), durationMs, (earlier, takesMs) => {
        const pace = new TaskPace();
        for (const each of earlier) lookAt(pace, each);
        assert.ok(lookAt(pace, takesMs).lateMs <= 1_000);
      }),
    );
  });

  test("the end of one that is no shorter than the others is noticed within a twelfth", () => {
    fc.assert(
      fc.property(fc.array(durationMs, { minLength: 1, maxLength: 12 }), (durations) => {
        const pace = new TaskPace();
        for (const each of durations) lookAt(pace, each);
        const takesMs = Math.max(...durations);
        const { lateMs } = lookAt(pace, takesMs);
        assert.ok(lateMs <= Math.max(25, takesMs / 12) + 1, `${lateMs} ms late`);
      }),
    );
  });

  test("a task that takes minutes is looked at once in a second", () => {
    const pace = new TaskPace();
    assert.equal(pace.waitMs("AddDisk", 60_000), 1_000);
    pace.ended("AddDisk", { ranMs: 600_000, runningMs: 599_000 });
    assert.equal(pace.waitMs("AddDisk", 0), 1_000);
    assert.equal(pace.waitMs("AddDisk", 60_000), 1_000);
  });

  test("where ends are spread evenly, about twelve looks notice each within a twelfth of the spread", () => {
    const pace = new TaskPace();
    const durations = Array.from({ length: 64 }, (_, index) => 600 + ((index * 37) % 64) * 19);
    for (const each of durations) lookAt(pace, each);
    const seen = durations.map((takesMs) => lookAt(pace, takesMs));
    const looks = seen.reduce((sum, each) => sum + each.looks, 0) / seen.length;
    assert.ok(looks <= 12, `${looks} looks on average`);
    for (const { lateMs } of seen) assert.ok(lateMs <= 115, `${lateMs} ms late`);
  });

  test("the end of the first of its kind is noticed within an eighth", () => {
    fc.assert(
      fc.property(durationMs, (takesMs) => {
        const { lateMs } = lookAt(new TaskPace(), takesMs);
        assert.ok(lateMs <= Math.max(25, takesMs / 8) + 1, `${lateMs} ms late`);
      }),
    );
  });

  test("kinds of tasks do not learn from each other, and old times are forgotten", () => {
    const pace = new TaskPace();
    assert.equal(pace.waitMs("Create", 0), 25);
    pace.ended("Create", { ranMs: 200 });
    assert.equal(pace.waitMs("Create", 0), 48);
    for (let index = 0; index < 32; index++) pace.ended("Create", { ranMs: 900, runningMs: 800 });
    assert.equal(pace.waitMs("Create", 0), 737);
    assert.equal(pace.waitMs("Grow", 0), 25);
  });
});

test("an unknown outcome is asked about by the age of its record, whatever the date is set to", () => {
  const clock = new VirtualClock();
  const opened = { boot: clock.bootId, uptimeMs: 0 };
  const record = { attempt: 1, since: "2030-01-01T00:00:00Z", clock: opened } as OperationRecord;
  assert.equal(unconfirmedMs(record, 60_000, clock), 1_000);
  assert.equal(unconfirmedMs({ ...record, attempt: 9 }, 60_000, clock), 8_000);
  clock.advance(40_000);
  assert.equal(unconfirmedMs(record, 20_000, clock), 10_000);
  assert.equal(unconfirmedMs(record, 5_000, clock), 5_000, "not beyond its window");
});
