import type { Clock } from "../../kernel/clock.ts";
import type { Terminal } from "../command.ts";

/** How a long look ended. */
export type Ending<Result> =
  | { readonly how: "done"; readonly result: Result }
  | { readonly how: "interrupted" }
  | { readonly how: "late" };

class Stop extends Error {
  readonly how: "interrupted" | "late";

  constructor(how: "interrupted" | "late") {
    super(how);
    this.how = how;
  }
}

/**
 * Runs work that may take long, until it is done, the time is up or the person presses Ctrl-C. The
 * work heeds its signal; that it then rejects is its way of ending, and no fault.
 */
export async function untilStopped<Result>(
  terminal: Terminal,
  { clock, withinMs }: { clock: Clock; withinMs?: number },
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Ending<Result>> {
  const controller = new AbortController();
  void terminal.interrupted.then(() => controller.abort(new Stop("interrupted")));
  const cancel =
    withinMs === undefined
      ? (): void => undefined
      : clock.after(withinMs, () => controller.abort(new Stop("late")));
  try {
    return { how: "done", result: await work(controller.signal) };
  } catch (error) {
    const stop = stopBehind(error, controller.signal);
    if (stop === undefined) throw error;
    return { how: stop.how };
  } finally {
    cancel();
  }
}

/** The transport may wrap the reason for which it gave up. */
function stopBehind(error: unknown, signal: AbortSignal): Stop | undefined {
  if (error instanceof Stop) return error;
  const reason: unknown = signal.reason;
  return signal.aborted && reason instanceof Stop ? reason : undefined;
}
