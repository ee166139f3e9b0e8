import { AsyncLocalStorage } from "node:async_hooks";
import type { Clock } from "../kernel/clock.ts";

/**
 * Tells the time that a run spends waiting for somebody else, as a hypervisor, from the time that
 * is its own. Waits that overlap count once.
 */
export interface OutsideTime {
  /** Does some work, and says at its end how long it waited outside. */
  run<T>(work: () => Promise<T>, whenDone: (outsideMs: number) => void): Promise<T>;
  /** A wait for somebody else, inside of a run or not. */
  wait<T>(outside: () => Promise<T>): Promise<T>;
}

/** The waits of one run. */
interface Account {
  waits: number;
  sinceMs: number;
  totalMs: number;
}

export function createOutsideTime(clock: Clock): OutsideTime {
  const current = new AsyncLocalStorage<Account>();
  return {
    run: async (work, whenDone) => {
      const account: Account = { waits: 0, sinceMs: 0, totalMs: 0 };
      try {
        return await current.run(account, work);
      } finally {
        whenDone(account.totalMs + (account.waits > 0 ? clock.monotonicMs() - account.sinceMs : 0));
      }
    },
    wait: async (outside) => {
      const account = current.getStore();
      if (account === undefined) return await outside();
      if (account.waits++ === 0) account.sinceMs = clock.monotonicMs();
      try {
        return await outside();
      } finally {
        if (--account.waits === 0) account.totalMs += clock.monotonicMs() - account.sinceMs;
      }
    },
  };
}
