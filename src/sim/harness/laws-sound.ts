import { Violation } from "./violation.ts";

/** Errors that only a mistake in the code throws, and what the assertions of Berth say. */
const mistakes = /\b(?:TypeError|ReferenceError|RangeError|AssertionError)\b|\bassertion failed: /;

/**
 * Law "sound": no line of a log tells of a mistake in the code. Whatever falls over is tried again,
 * and where the next try works no other law would notice.
 */
export function demandSound(line: string): void {
  if (mistakes.test(line)) throw new Violation("sound", `a log says: ${line.slice(0, 600)}`);
}

/** Law "sound", of what was thrown where nobody could catch it: the real process would end. */
export function unheard(thrown: unknown): Violation {
  return new Violation("sound", `nobody caught this: ${String(thrown).slice(0, 600)}`);
}

/**
 * Tells of everything that nobody catches, on this thread, until it is stopped. Without it the
 * process would end there, and with it everything that is known of the history.
 */
export function hearUncaught(hear: (thrown: unknown) => void): () => void {
  const listener = (thrown: unknown): void => hear(thrown);
  process.on("unhandledRejection", listener);
  process.on("uncaughtException", listener);
  return () => {
    process.off("unhandledRejection", listener);
    process.off("uncaughtException", listener);
  };
}
