import type { ServerResponse } from "node:http";
import type { Clock } from "../../kernel/clock.ts";
import { bounds } from "./bounds.ts";

/** Where an answer goes. */
export interface Recipient {
  readonly response: ServerResponse;
  readonly clock: Clock;
  readonly acceptsGzip: boolean;
  /** The server is closing: the connection ends with this answer. */
  readonly isLast: boolean;
}

/**
 * Cuts the connection if the answer is not taken in time. The function that it returns says that
 * some more of it was, and time begins anew.
 */
export function cutIfStalled(to: Recipient): () => void {
  const { response, clock } = to;
  const arm = (): (() => void) => clock.after(bounds.stallMs, () => response.destroy());
  let cancel = arm();
  response.once("close", () => cancel());
  return () => {
    cancel();
    if (!response.closed) cancel = arm();
  };
}
