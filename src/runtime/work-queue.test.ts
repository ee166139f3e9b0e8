import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { flush, pass } from "./testing.ts";
import { priorities, WorkQueue, type QueueHooks, type Turn } from "./work-queue.ts";

/** A queue whose runs end when the test says so. */
function openQueue(concurrency = 1, hooks: QueueHooks = {}, runningMax = concurrency) {
  const clock = new VirtualClock();
  const started: string[] = [];
  const turns: Turn[] = [];
  const running = new Map<string, () => void>();
  const queue = new WorkQueue({
    clock,
    concurrency,
    hooks,
    work: async (turn) => {
      assert(!running.has(turn.key), "a key never runs twice at once");
      const { key } = turn;
      started.push(key);
      turns.push(turn);
      const { promise, resolve } = Promise.withResolvers<void>();
      running.set(key, resolve);
      assert(running.size <= runningMax, "no more run than may");
      await promise;
    },
  });
  const end = async (key: string): Promise<void> => {
    const resolve = running.get(key);
    assert(resolve, `${key} runs`);
    running.delete(key);
    resolve();
    await flush();
  };
  const endAll = async (): Promise<void> => {
    for (let [key] = running.keys(); key !== undefined; [key] = running.keys()) await end(key);
  };
  return { queue, clock, started, turns, running, end, endAll };
}

describe("a work queue", () => {
  test("runs a key once, however often it was added before", async () => {
    const { queue, started, endAll } = openQueue();
    queue.start();
    for (let i = 0; i < 5; i++) queue.add("a/b");
    await flush();
    await endAll();
    assert.deepEqual(started, ["a/b"]);
  });

  test("runs a key that is added while it runs once more, and never twice at once", async () => {
    const { queue, started, end } = openQueue(4);
    queue.start();
    queue.add("a/b");
    await flush();
    queue.add("a/b");
    queue.add("a/b");
    await flush();
    assert.deepEqual(started, ["a/b"]);
    await end("a/b");
    assert.deepEqual(started, ["a/b", "a/b"]);
    await end("a/b");
    assert.deepEqual(started, ["a/b", "a/b"]);
    assert.deepEqual(queue.view(), { running: [], ready: [], delayed: [] });
  });

  test("lets others run beside a turn that is slow, and not without end", async () => {
    const { queue, clock, started, running } = openQueue(2, {}, 16);
    queue.start();
    for (let i = 0; i < 20; i++) queue.add(`dead/${i}`);
    await flush();
    assert.equal(started.length, 2, "as many as may at once");
    for (let i = 0; i < 20; i++) await pass(clock, 250);
    assert.equal(running.size, 16, "eight times as many, because all of them are slow");
  });

  test("does nothing before it is started, nor within the call that adds", async () => {
    const { queue, started } = openQueue();
    queue.add("a/b");
    await flush();
    assert.deepEqual(started, []);
    queue.start();
    assert.deepEqual(started, []);
    await flush();
    assert.deepEqual(started, ["a/b"]);
  });

  test("takes steps before edits before resyncs before background, equals in their order", async () => {
    const { queue, started, endAll } = openQueue();
    queue.add("b1", { priority: "background" });
    queue.add("r1", { priority: "resync" });
    queue.add("e1", { priority: "edit" });
    queue.add("b2", { priority: "background" });
    queue.add("r2");
    queue.add("e2", { priority: "edit" });
    queue.add("s1", { priority: "step" });
    queue.start();
    await flush();
    await endAll();
    assert.deepEqual(started, ["s1", "e1", "e2", "r1", "r2", "b1", "b2"]);
  });

  test("moves a key up when somebody more urgent asks for it, and never down", async () => {
    const { queue, turns, endAll } = openQueue();
    queue.add("a", { priority: "background" });
    queue.add("b", { priority: "resync" });
    queue.add("a", { priority: "edit" });
    queue.add("a", { priority: "background" });
    queue.start();
    await flush();
    await endAll();
    assert.deepEqual(turns, [
      { key: "a", priority: "edit" },
      { key: "b", priority: "resync" },
    ]);
  });

  test("puts a key that asks for itself again behind its equals", async () => {
    const { queue, started, end } = openQueue();
    queue.start();
    for (const key of ["a", "b", "c"]) queue.add(key);
    await flush();
    queue.add("a");
    await end("a");
    await end("b");
    await end("c");
    assert.deepEqual(started, ["a", "b", "c", "a"]);
  });

  test("lets the oldest go from time to time, so that a storm of edits starves nobody", async () => {
    const { queue, clock, started, end } = openQueue();
    queue.add("old", { priority: "background" });
    clock.advance(1);
    queue.add("e0", { priority: "edit" });
    queue.start();
    await flush();
    for (let i = 1; i < 20 && !started.includes("old"); i++) {
      queue.add(`e${i}`, { priority: "edit" });
      await end(started.at(-1) ?? "");
    }
    assert.equal(started.indexOf("old"), 7);
  });

  test("waits for a delay, of several for the earliest", async () => {
    const { queue, clock, started, endAll } = openQueue();
    queue.start();
    queue.add("a", { delayMs: 500 });
    queue.add("a", { delayMs: 100, priority: "background" });
    queue.add("a", { delayMs: 900 });
    await pass(clock, 99);
    assert.deepEqual(started, []);
    await pass(clock, 1);
    assert.deepEqual(started, ["a"]);
    await endAll();
    await pass(clock, 1_000);
    assert.deepEqual(started, ["a"]);
  });

  test("runs at once what is added without a delay, and forgets the delay", async () => {
    const { queue, clock, turns, endAll } = openQueue();
    queue.start();
    queue.add("a", { delayMs: 500, priority: "edit" });
    queue.add("a", { priority: "background" });
    queue.add("a", { delayMs: 10 });
    await flush();
    assert.deepEqual(turns, [{ key: "a", priority: "edit" }]);
    await endAll();
    await pass(clock, 1_000);
    assert.equal(turns.length, 1);
    assert.equal(clock.timers, 0);
  });

  test("keeps a delay that is added or ends while the key runs", async () => {
    const { queue, clock, started, end } = openQueue();
    queue.start();
    queue.add("a");
    await flush();
    queue.add("a", { delayMs: 100 });
    await end("a");
    await pass(clock, 99);
    assert.equal(started.length, 1);
    await pass(clock, 1);
    assert.equal(started.length, 2);
    queue.add("a", { delayMs: 100 });
    await pass(clock, 200);
    assert.equal(started.length, 2);
    await end("a");
    assert.equal(started.length, 3);
  });

  test("looks again after a day at the latest: longer timers overflow", async () => {
    const { queue, clock } = openQueue();
    queue.add("a", { delayMs: Infinity });
    assert.equal(clock.nextInMs(), 86_400_000);
    assert.throws(() => queue.add("b", { delayMs: NaN }), /a delay is a number/);
  });

  test("runs as many at once as it may", async () => {
    const { queue, started, end } = openQueue(2);
    queue.start();
    for (const key of ["a", "b", "c", "d"]) queue.add(key);
    await flush();
    assert.deepEqual(started, ["a", "b"]);
    await end("b");
    assert.deepEqual(started, ["a", "b", "c"]);
  });

  test("stops gracefully: what runs ends, nothing new starts, no timer is left", async () => {
    const { queue, clock, started, end } = openQueue();
    queue.start();
    queue.add("a");
    queue.add("b");
    queue.add("c", { delayMs: 10 });
    await flush();
    queue.add("a");
    let isStopped = false;
    const stopping = queue.stop().then(() => (isStopped = true));
    queue.add("d");
    await flush();
    assert.equal(isStopped, false);
    assert.equal(clock.timers, 0);
    await end("a");
    await stopping;
    await queue.stop();
    await pass(clock, 100);
    assert.deepEqual(started, ["a"]);
  });

  test("stops at once where nothing runs", async () => {
    const { queue } = openQueue();
    queue.add("a");
    await queue.stop();
    queue.start();
    await flush();
    assert.deepEqual(queue.view().running, []);
  });

  test("measures depth, wait without the asked delay, and work", async () => {
    const depths: number[] = [];
    const waits: number[] = [];
    const works: number[] = [];
    const { queue, clock, end } = openQueue(1, {
      depth: (keys) => depths.push(keys),
      waited: (waitMs) => waits.push(waitMs),
      worked: (workMs) => works.push(workMs),
    });
    queue.start();
    queue.add("a");
    queue.add("b", { delayMs: 10 });
    await flush();
    await pass(clock, 30);
    await end("a");
    await pass(clock, 5);
    await end("b");
    assert.deepEqual(waits, [0, 20]);
    assert.deepEqual(works, [30, 5]);
    assert.deepEqual(depths, [1, 0, 1, 1, 0, 0]);
  });

  test("never loses a key: the last add of each is followed by a run", async () => {
    const step = fc.oneof(
      fc.record({
        add: fc.constantFrom("a", "b", "c", "d"),
        priority: fc.constantFrom(...priorities),
        delayMs: fc.constantFrom(0, 0, 5, 50),
      }),
      fc.record({ end: fc.nat(3) }),
      fc.record({ passMs: fc.constantFrom(1, 10, 60) }),
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 40 }),
        fc.integer({ min: 1, max: 3 }),
        async (steps, n) => {
          const { queue, clock, started, running, end, endAll } = openQueue(n);
          queue.start();
          const addedAt = new Map<string, number>();
          for (const one of steps) {
            if ("add" in one) {
              addedAt.set(one.add, started.length);
              queue.add(one.add, one);
            } else if ("end" in one) {
              const key = [...running.keys()][one.end];
              if (key !== undefined) await end(key);
            } else {
              await pass(clock, one.passMs);
            }
          }
          for (let i = 0; i < 3; i++) {
            await flush();
            await endAll();
            await pass(clock, 60);
          }
          await endAll();
          for (const [key, index] of addedAt)
            assert(started.lastIndexOf(key) >= index, `${key} ran`);
          assert.deepEqual(queue.view(), { running: [], ready: [], delayed: [] });
          assert.equal(clock.timers, 0);
        },
      ),
      { numRuns: 150 },
    );
  });
});
