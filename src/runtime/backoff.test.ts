import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { jittered, nextAttempt, transientPolicy, type NextAttempt } from "./backoff.ts";
import { seededRandom, steadyRandom } from "./testing.ts";

const five = { ...transientPolicy, attemptsMax: 5 };

function waits(policy: typeof transientPolicy, count: number): (number | string)[] {
  const secondsOf = (next: NextAttempt): number | string => {
    return next.type === "retry" ? next.afterMs / 1000 : next.type;
  };
  return Array.from({ length: count }, (_, i) => {
    return secondsOf(nextAttempt(policy, i + 1, steadyRandom));
  });
}

test("waits 30 s, 1, 2, 5, then 10 minutes for ever", () => {
  assert.deepEqual(waits(transientPolicy, 8), [30, 60, 120, 300, 600, 600, 600, 600]);
});

test("stalls with the fifth failure where five are the limit", () => {
  assert.deepEqual(waits(five, 6), [30, 60, 120, 300, "stall", "stall"]);
});

test("stalls at once without delays", () => {
  const policy = { delaysMs: [], jitter: 0, attemptsMax: Infinity };
  assert.deepEqual(nextAttempt(policy, 1, steadyRandom), { type: "stall" });
});

test("is never off by more than the jitter, and uses both sides of it", () => {
  fc.assert(
    fc.property(fc.nat(), fc.integer({ min: 1, max: 9 }), (seed, attempts) => {
      const plain = nextAttempt({ ...transientPolicy, jitter: 0 }, attempts, steadyRandom);
      const next = nextAttempt(transientPolicy, attempts, seededRandom(seed));
      assert(plain.type === "retry" && next.type === "retry");
      assert(next.afterMs >= plain.afterMs * 0.8 && next.afterMs <= plain.afterMs * 1.2);
    }),
  );
  const low = { ...steadyRandom, number: () => 0 };
  const high = { ...steadyRandom, number: () => 0.999_999 };
  assert.deepEqual([jittered(1000, 0.2, low), jittered(1000, 0.2, high)], [800, 1200]);
});

test("takes no failure for an error of the caller", () => {
  assert.throws(() => nextAttempt(transientPolicy, 0, steadyRandom), /there was a failure/);
});
