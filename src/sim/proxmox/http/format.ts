import { Listing } from "../endpoint.ts";
import { messageOf, PveError } from "../errors.ts";
import type { Quirks } from "../release.ts";
import { type ApiResponse, jsonResponse } from "./message.ts";

export type Format = "json" | "extjs";

/** A reply with data. */
export function dataResponse(format: Format, value: unknown): ApiResponse {
  const isListing = value instanceof Listing;
  const data = isListing ? value.data : (value ?? null);
  const total = isListing && value.total > 0 ? { total: value.total } : {};
  const success = format === "extjs" ? { success: 1 } : {};
  return jsonResponse(200, "OK", { data, ...total, ...success });
}

/**
 * A failure. The text is the reason phrase, and since 8.4 also in the body; under "extjs" the
 * status is always 200 and the failure is in the body.
 */
export function errorResponse(format: Format, quirks: Quirks, error: unknown): ApiResponse {
  const known = error instanceof PveError ? error : new PveError(messageOf(error));
  const { status, errors } = known;
  // The server's own texts end without a newline, those that Perl died with have one.
  const message = status === 501 ? known.message : `${known.message}\n`;
  const details = errors === undefined ? {} : { errors };
  if (format === "extjs") {
    // An exception's code is a string, a number otherwise.
    const code = status === 500 || status === 501 ? status : String(status);
    return jsonResponse(200, "OK", { data: null, message, status: code, success: 0, ...details });
  }
  const told = quirks.messageInBody ? { message } : {};
  return jsonResponse(status, reasonOf(known.message), { data: null, ...told, ...details });
}

/** The first line, without what a status line cannot hold. */
function reasonOf(message: string): string {
  return (message.split("\n")[0] ?? "").replaceAll(/[\x00-\x1f\x7f]/g, " ");
}
