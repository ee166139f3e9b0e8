import { randomBytes, randomUUID } from "node:crypto";
import type { Clock } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";

/** The machine's own clock. Timers do not keep the process alive: open servers do. */
export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  after: (delayMs, callback) => {
    const timer = setTimeout(callback, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** The machine's own randomness. */
export const systemRandom: Random = {
  number: () => randomBytes(6).readUIntBE(0, 6) / 2 ** 48,
  bytes: (count) => randomBytes(count),
  uuid: () => randomUUID(),
};
