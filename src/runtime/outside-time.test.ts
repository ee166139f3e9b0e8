import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { sleep } from "../kernel/clock.ts";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { createOutsideTime } from "./outside-time.ts";

describe("the time outside", () => {
  test("is that of the waits of a run, and overlapping ones count once", async () => {
    const clock = new VirtualClock();
    const outside = createOutsideTime(clock);
    const waitMs = (ms: number): Promise<void> => outside.wait(() => sleep(clock, ms));
    let spentMs = -1;
    const run = outside.run(
      async () => {
        await sleep(clock, 10);
        await waitMs(100);
        await sleep(clock, 10);
        await Promise.all([waitMs(50), waitMs(70)]);
      },
      (ms) => (spentMs = ms),
    );
    await pass(clock, 400);
    await run;
    assert.equal(spentMs, 170);
  });

  test("of one run is not that of another, and outside of runs nobody counts", async () => {
    const clock = new VirtualClock();
    const outside = createOutsideTime(clock);
    const spent: number[] = [];
    const one = outside.run(
      () => outside.wait(() => sleep(clock, 30)),
      (ms) => spent.push(ms),
    );
    const other = outside.run(
      () => sleep(clock, 60),
      (ms) => spent.push(ms),
    );
    const alone = outside.wait(() => sleep(clock, 90));
    await pass(clock, 100);
    await Promise.all([one, other, alone]);
    assert.deepEqual(spent, [30, 0]);
  });

  test("is said of a run that fails, too", async () => {
    const clock = new VirtualClock();
    const outside = createOutsideTime(clock);
    let spentMs = -1;
    const run = outside.run(
      async () => {
        await outside.wait(() => sleep(clock, 5));
        throw new Error("bad");
      },
      (ms) => (spentMs = ms),
    );
    const failed = assert.rejects(run, /bad/);
    await pass(clock, 10);
    await failed;
    assert.equal(spentMs, 5);
  });
});

async function pass(clock: VirtualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 5) {
    clock.advance(5);
    await new Promise(setImmediate);
  }
}
