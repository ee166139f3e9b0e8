/**
 * What never settles. One for each who waits: a shared promise would remember all who ever waited
 * for it, and what they hold, for as long as the process runs.
 */
export function never(): Promise<never> {
  return new Promise(() => undefined);
}
