/** What a worker tells, one message per test. */
export type Report =
  | { outcome: "passed"; name: string }
  | { outcome: "failed"; name: string; place: string; detail: string }
  | { outcome: "skipped"; name: string; reason: string }
  /** All files have been run: what comes after this is no test's fault. */
  | { outcome: "end" };

export function parseReport(message: unknown): Report {
  // cast: only our worker, of the same build, holds the other end of the channel.
  return message as Report;
}
