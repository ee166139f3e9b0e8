import { randomBytes, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Clock } from "../kernel/clock.ts";
import type { Random } from "../kernel/random.ts";
import { clockSkew } from "./clock-skew.ts";

const skewFile = process.env["BERTH_CLOCK_SKEW_FILE"] || undefined;
const skewMs = clockSkew(skewFile, () => performance.now());
/** How much longer ago the machine seems to have booted, for tests that let time pass. */
const uptimeSkewMs = Number(process.env["BERTH_UPTIME_SKEW_MS"]) || 0;

/** The machine's own clock. Timers do not keep the process alive: open servers do. */
export const systemClock: Clock = {
  nowMs: () => Date.now() + skewMs(),
  // Since the machine's boot, and not since the start of the process: see bootId.
  monotonicMs: () => Number(process.hrtime.bigint()) / 1e6 + uptimeSkewMs,
  bootId: readBootId(),
  after: (delayMs, callback) => {
    const timer = setTimeout(callback, delayMs);
    timer.unref();
    return () => clearTimeout(timer);
  },
};

/** Linux names each boot. Elsewhere every process counts as one of its own. */
function readBootId(): string {
  try {
    return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim().slice(0, 64);
  } catch {
    return randomUUID();
  }
}

/** The machine's own randomness. */
export const systemRandom: Random = {
  number: () => randomBytes(6).readUIntBE(0, 6) / 2 ** 48,
  bytes: (count) => randomBytes(count),
  uuid: () => randomUUID(),
};
