import { NetworkError } from "../client/index.ts";
import { ApiError } from "../kernel/status.ts";
import type { ControllerOptions, RetryPolicy } from "../runtime/index.ts";

/** The API server is away: it comes back, and until then nothing else can be done. */
const apiAwayPolicy: RetryPolicy = {
  delaysMs: [500, 1_000, 2_000, 5_000, 10_000],
  jitter: 0.2,
  attemptsMax: Infinity,
};

export function classify(error: unknown): ReturnType<NonNullable<ControllerOptions["classify"]>> {
  if (!isAway(error)) return undefined;
  return { category: "ApiUnreachable", policy: apiAwayPolicy };
}

/** No answer, or that it takes nothing now: unavailable, or its disk is full. */
function isAway(error: unknown): boolean {
  if (error instanceof NetworkError) return true;
  return error instanceof ApiError && (error.code === 503 || error.code === 507);
}
