/** Cancels what it was given for. Safe to call twice, and after the timer fired. */
export type Cancel = () => void;

/**
 * Time, as an argument. The app passes the real one, tests and the simulation a virtual one;
 * nothing else in the project may ask the machine what time it is.
 */
export interface Clock {
  /** Wall time: milliseconds since 1970, for timestamps that people read. It may jump. */
  nowMs(): number;
  /**
   * Monotonic time in milliseconds, for deadlines and measuring. It never jumps. Processes with the
   * same `bootId` read the same one.
   */
  monotonicMs(): number;
  /** Which boot of which machine the monotonic time belongs to. */
  readonly bootId: string;
  /** Calls back once, after at least so many milliseconds. */
  after(delayMs: number, callback: () => void): Cancel;
}

/** Resolves after a delay; rejects with the signal's reason as soon as it is aborted. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const onAbort = (): void => {
      cancel();
      reject(signal?.reason);
    };
    const cancel = clock.after(delayMs, () => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    });
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** The form of every timestamp in the Kubernetes API: RFC 3339, UTC, whole seconds. */
export function formatTime(timeMs: number): string {
  const second = Math.floor(timeMs / 1000);
  if (second === lastFormatted.second) return lastFormatted.text;
  const text = `${new Date(second * 1000).toISOString().slice(0, 19)}Z`;
  lastFormatted = { second, text };
  return text;
}

// Thousands of objects are created in the same second, and writing a date out is slow.
let lastFormatted = { second: Number.NaN, text: "" };

/** The form of Lease and Event times: RFC 3339 with microseconds. */
export function formatMicroTime(timeMs: number): string {
  return `${new Date(timeMs).toISOString().slice(0, 23)}000Z`;
}
