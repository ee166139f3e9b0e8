import { isJsonObject } from "../kernel/json.ts";
import { ApiError } from "../kernel/status.ts";

/**
 * The server's answer is not known. Told apart by `code`:
 * - `Unreachable`: nothing was changed. Nothing reached the server, or it was only asked to read.
 * - `UnknownOutcome`: a write may have been done or not; only looking tells. It is never resent.
 */
export class NetworkError extends Error {
  readonly code: "Unreachable" | "UnknownOutcome";

  constructor(code: NetworkError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "NetworkError";
    this.code = code;
  }
}

/**
 * Whether a write that failed so may have been done all the same. An answer of 5xx counts: a server
 * whose own store timed out does not know either. 501 and 503 are refusals before anything is done.
 */
export function isOutcomeUnknown(error: unknown): boolean {
  if (error instanceof NetworkError) return error.code === "UnknownOutcome";
  if (!(error instanceof ApiError)) return false;
  return error.code >= 500 && error.code !== 501 && error.code !== 503;
}

/** The resourceVersion is too old to be watched or paged from: list anew. */
export function isExpired(error: unknown): boolean {
  return error instanceof ApiError && error.code === 410;
}

/** The error of a refusing answer. What is not a Status, as a proxy's page, is told shortly. */
export function apiErrorOf(httpStatus: number, body: unknown, text: string): ApiError {
  if (!isJsonObject(body) || body["kind"] !== "Status") {
    const shown = text.trim().slice(0, 200);
    return new ApiError(httpStatus, "", `the server answered ${httpStatus}: ${shown}`);
  }
  const { code, reason, message, details } = body;
  return new ApiError(
    typeof code === "number" ? code : httpStatus,
    typeof reason === "string" ? reason : "",
    typeof message === "string" ? message : `the server answered ${httpStatus}`,
    isJsonObject(details) ? details : undefined,
  );
}
