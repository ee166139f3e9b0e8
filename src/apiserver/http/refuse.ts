import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "../../kernel/clock.ts";
import type { Status } from "../../kernel/status.ts";
import { ApiError } from "../../kernel/status.ts";
import { bounds } from "./bounds.ts";

/**
 * Answers while the client is still sending, and ends the connection. Closing at once would reset
 * it and the client would see a broken pipe instead of the answer; so the answer goes out, the rest
 * of the body is thrown away for a while, and then the connection closes.
 */
export function refuseBody(
  request: IncomingMessage,
  response: ServerResponse,
  options: { readonly error: ApiError; readonly clock: Clock },
): void {
  const body = bodyOf(options.error.toStatus());
  response.writeHead(options.error.code, {
    "content-type": "application/json",
    "content-length": body.length,
    connection: "close",
  });
  response.write(body);
  let discardedBytes = 0;
  const cut = (): void => void response.destroy();
  const cancel = options.clock.after(bounds.lingerMs, cut);
  request.on("data", (chunk: Buffer) => {
    discardedBytes += chunk.length;
    if (discardedBytes > bounds.lingerBytes) cut();
  });
  request.on("end", () => response.end());
  response.on("close", cancel);
  request.resume();
}

/** What is wrong with bytes that never became a request, by the code of node's parser. */
const parserErrors: Readonly<Record<string, ApiError>> = {
  HPE_HEADER_OVERFLOW: new ApiError(
    431,
    "RequestHeaderFieldsTooLarge",
    "the headers of the request are too large",
  ),
  ERR_HTTP_REQUEST_TIMEOUT: new ApiError(408, "Timeout", "the request did not arrive in time"),
};

const malformed = new ApiError(400, "BadRequest", "the request is not valid HTTP/1.1");

/** Answers bytes that are no request, on the bare connection, and closes it. */
export function refuseBytes(socket: Duplex, code: string | undefined, clock: Clock): void {
  const status = (parserErrors[code ?? ""] ?? malformed).toStatus();
  const body = bodyOf(status);
  socket.end(
    `HTTP/1.1 ${status.code} ${reasonPhrases[status.code] ?? "Bad Request"}\r\n` +
      `content-type: application/json\r\ncontent-length: ${body.length}\r\n` +
      `connection: close\r\n\r\n${body.toString()}`,
  );
  // The other side has the last word on a connection that we ended. It does not get for ever.
  socket.once(
    "close",
    clock.after(bounds.lingerMs, () => socket.destroy()),
  );
  socket.resume();
}

const reasonPhrases: Readonly<Record<number, string>> = {
  408: "Request Timeout",
  431: "Request Header Fields Too Large",
};

function bodyOf(status: Status): Buffer {
  return Buffer.from(JSON.stringify(status));
}
