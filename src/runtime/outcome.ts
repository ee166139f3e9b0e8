/**
 * What a reconcile came to. A failure is none of these: it is thrown.
 *
 * - `settled`: all is as declared. Every failure before it is forgotten.
 * - `again`: one step was made, the next follows at once.
 * - `wait`: not yet. Waiting is no failure and burns no attempt.
 * - `stalled`: nothing more is to be done until the declaration or the world changes. A resync
 *   looks all the same, since that is how a change of the world may be seen.
 */
export type Outcome =
  | { readonly type: "settled" }
  | { readonly type: "again"; readonly reason: string }
  | { readonly type: "wait"; readonly reason: string; readonly afterMs: number }
  | { readonly type: "stalled"; readonly reason: string };

export const settled: Outcome = { type: "settled" };

/** Once more: at once, or after a while. The reason is for traces. */
export function again(reason: string, afterMs = 0): Outcome {
  return afterMs > 0 ? { type: "wait", reason, afterMs } : { type: "again", reason };
}

export function stalled(reason: string): Outcome {
  return { type: "stalled", reason };
}
