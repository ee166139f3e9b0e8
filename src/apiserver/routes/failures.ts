import type { Random } from "../../kernel/random.ts";
import { ApiError } from "../../kernel/status.ts";
import type { WireRequest } from "../../kernel/wire.ts";
import type { StoreErrorCode } from "../../store/store.ts";
import { StoreError } from "../../store/store.ts";
import type { Clock } from "../../kernel/clock.ts";
import type { Log } from "../log.ts";
import { createLogThrottle } from "../log.ts";

/** Turns whatever was thrown into the refusal that the client gets. */
export type FailureReport = (error: unknown, request: WireRequest) => ApiError;

/**
 * A refusal is passed on as it is, and what the store says in its own words. Anything else is our
 * fault: the client gets a reference, the log gets it too with the place in the code.
 */
export function createFailureReport(options: {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Log;
}): FailureReport {
  const mayLog = createLogThrottle(options.clock);
  return (error, request) => {
    if (error instanceof ApiError) return error;
    const refusal = error instanceof StoreError ? storeRefusals[error.code] : undefined;
    if (error instanceof StoreError && refusal !== undefined) {
      // With a full disk every write fails. One line a minute says it as well as a thousand.
      const { code, message } = error;
      if (mayLog(code)) options.log("error", "a write was not stored", { code, error: message });
      return refusal;
    }
    const reference = Buffer.from(options.random.bytes(6)).toString("hex");
    const path = request.url.split("?", 1)[0] ?? "";
    options.log("error", "a request failed, and should not have", {
      reference,
      method: request.method,
      path,
      ...describe(error),
    });
    const message = `Internal error occurred: the server's log has it under ${reference}`;
    return new ApiError(500, "InternalError", message, { causes: [{ message }] });
  };
}

/** What a write meets that the disk or the load did not let through. */
const storeRefusals: Partial<Record<StoreErrorCode, ApiError>> = {
  StorageFull: new ApiError(
    507,
    "InsufficientStorage",
    "nothing was stored: the disk of the data folder is full",
  ),
  StorageFailed: new ApiError(
    500,
    "InternalError",
    "Internal error occurred: nothing was stored, because the disk refused the write",
  ),
  OutcomeUnknown: new ApiError(
    500,
    "InternalError",
    "Internal error occurred: the disk failed during the write, which may or may not be stored",
  ),
  Overloaded: new ApiError(
    429,
    "TooManyRequests",
    "too many writes are waiting for the disk, please try again",
    { retryAfterSeconds: 1 },
  ),
  Closed: new ApiError(503, "ServiceUnavailable", "the server is shutting down", {
    retryAfterSeconds: 1,
  }),
};

/**
 * The place in the code, and the message save where it quotes what a client sent: the engine's
 * complaint about bad JSON does, and a Secret may be in it.
 */
function describe(error: unknown): Record<string, string> {
  if (!(error instanceof Error)) return { error: typeof error };
  const text = error instanceof SyntaxError ? error.name : `${error.name}: ${error.message}`;
  const frames = error.stack?.match(/^\s+at .*$/gm) ?? [];
  return {
    error: text,
    at: frames
      .slice(0, 8)
      .map((frame) => frame.trim())
      .join(" < "),
  };
}
