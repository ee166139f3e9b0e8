/** A request as the API server sees it. */
export interface ApiRequest {
  readonly method: string;
  /** With the query: "/api2/json/nodes?x=1". */
  readonly path: string;
  /** By name in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string;
  /** The node that is asked; any node answers for all. The first one by default. */
  readonly via?: string;
}

export interface ApiResponse {
  readonly status: number;
  /** The reason phrase: for errors, the first line of their text. */
  readonly reason: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** The connection ended without a reply. What was asked may have been done. */
export class ConnectionLost extends Error {
  readonly code = "ECONNRESET";
}

/** Nothing listens there: what was asked was not done. */
export class ConnectionRefused extends Error {
  readonly code = "ECONNREFUSED";
}

const baseHeaders: Readonly<Record<string, string>> = {
  "cache-control": "max-age=0",
  pragma: "no-cache",
  server: "pve-api-daemon/3.0",
};

const jsonHeaders: Readonly<Record<string, string>> = {
  ...baseHeaders,
  "content-type": "application/json;charset=UTF-8",
};

/** A reply of the HTTP server itself, without the API's envelope. */
export function plainResponse(status: number, reason: string, body = ""): ApiResponse {
  return { status, reason, headers: baseHeaders, body };
}

export function jsonResponse(status: number, reason: string, value: unknown): ApiResponse {
  return { status, reason, headers: jsonHeaders, body: JSON.stringify(value) };
}
