import { randomBytes, randomUUID } from "node:crypto";
import type { Clock } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";
import { clockSkew } from "./clock-skew.ts";

const skewFile = process.env["BERTH_CLOCK_SKEW_FILE"] || undefined;
const skewMs = clockSkew(skewFile, () => performance.now());

/** The machine's own clock. Timers do not keep the process alive: open servers do. */
export const systemClock: Clock = {
  nowMs: () => Date.now() + skewMs(),
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
