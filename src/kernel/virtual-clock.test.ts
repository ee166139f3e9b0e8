import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { VirtualClock } from "./virtual-clock.ts";

test("runs callbacks in the order of their times, also those set on the way", () => {
  const clock = new VirtualClock(1_000);
  const seen: string[] = [];
  clock.after(20, () => seen.push(`b at ${clock.monotonicMs()}`));
  clock.after(10, () => {
    seen.push(`a at ${clock.monotonicMs()}`);
    clock.after(5, () => seen.push(`c at ${clock.monotonicMs()}`));
  });
  clock.after(31, () => seen.push("never"));
  clock.advance(30);
  assert.deepEqual(seen, ["a at 10", "c at 15", "b at 20"]);
  assert.equal(clock.nowMs(), 1_030);
  assert.equal(clock.timers, 1);
  assert.equal(clock.nextInMs(), 1);
});

test("forgets a callback that is cancelled, at any time and twice", () => {
  const clock = new VirtualClock();
  const cancel = clock.after(10, () => assert.fail("it was cancelled"));
  cancel();
  cancel();
  assert.equal(clock.nextInMs(), undefined);
  clock.advance(100);
});

test("runs what was not cancelled in the order of time, then of setting, whatever was set", () => {
  const act = fc.oneof(
    fc.record({ do: fc.constant("set" as const), delayMs: fc.integer({ min: 0, max: 9 }) }),
    fc.record({ do: fc.constant("cancel" as const), which: fc.nat() }),
    fc.record({ do: fc.constant("advance" as const), ms: fc.integer({ min: 0, max: 6 }) }),
  );
  fc.assert(
    fc.property(fc.array(act, { maxLength: 60 }), (acts) => {
      const clock = new VirtualClock(0);
      const cancels: (() => void)[] = [];
      const seen: number[] = [];
      // The plain way to say it: a list that is searched for the earliest, from the front.
      let waiting: { id: number; atMs: number }[] = [];
      const expected: number[] = [];
      for (const each of acts) {
        if (each.do === "set") {
          const id = cancels.length;
          cancels.push(clock.after(each.delayMs, () => void seen.push(id)));
          waiting.push({ id, atMs: clock.monotonicMs() + each.delayMs });
        } else if (each.do === "cancel" && cancels.length > 0) {
          const id = each.which % cancels.length;
          cancels[id]?.();
          waiting = waiting.filter((timer) => timer.id !== id);
        } else if (each.do === "advance") {
          clock.advance(each.ms);
          const due = waiting.filter(({ atMs }) => atMs <= clock.monotonicMs());
          expected.push(...due.toSorted((a, b) => a.atMs - b.atMs).map(({ id }) => id));
          waiting = waiting.filter((timer) => !due.includes(timer));
        }
        const next = Math.min(...waiting.map(({ atMs }) => atMs));
        const nextInMs = waiting.length === 0 ? undefined : next - clock.monotonicMs();
        assert.deepEqual([clock.timers, clock.nextInMs()], [waiting.length, nextInMs]);
      }
      assert.deepEqual(seen, expected);
    }),
  );
});
