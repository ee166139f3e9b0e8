import assert from "node:assert/strict";
import { test } from "node:test";
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
