import type { ApiError } from "../../kernel/status.ts";
import type { WireResponse } from "../../kernel/wire.ts";

export function jsonResponse(status: number, value: unknown): WireResponse {
  return {
    status,
    headers: { "content-type": "application/json" },
    body: Buffer.from(JSON.stringify(value)),
  };
}

export function textResponse(status: number, text: string): WireResponse {
  return {
    status,
    headers: { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" },
    body: Buffer.from(text),
  };
}

/** A refusal as the Status that every Kubernetes client understands. */
export function statusResponse(error: ApiError): WireResponse {
  const response = jsonResponse(error.code, error.toStatus());
  const extra: Record<string, string> = {};
  if (error.code === 401) extra["www-authenticate"] = 'Bearer realm="berth"';
  const retryAfter = error.details?.retryAfterSeconds;
  if (retryAfter !== undefined) extra["retry-after"] = String(retryAfter);
  return { ...response, headers: { ...response.headers, ...extra } };
}
