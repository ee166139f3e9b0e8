import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { createServer } from "node:https";
import type { KeyPair } from "../../apiserver/index.ts";
import { type HookTarget, runHook } from "./hooks.ts";
import { type ApiResponse, ConnectionLost, ConnectionRefused } from "./http/message.ts";

/** The real server's own limits on a connection. */
const idleMs = 5_000;
const requestsPerConnection = 100;
/** What one request may carry: an uploaded image is the largest. */
const bodyBytesMax = 256 * 1024 ** 2;

export interface SimulatorServerOptions {
  readonly target: HookTarget;
  /** Whether /_sim/ is served. */
  readonly hooks: boolean;
  readonly certificate: KeyPair;
  readonly ca: string;
  /** Called before each reply: what a client has been told must be on disk. */
  readonly beforeReply: () => void;
  /** The same after a test hook, which changes things by hand. */
  readonly afterHook: () => void;
}

/** The model's API over HTTPS, with the real server's habits. */
export function createSimulatorServer(options: SimulatorServerOptions): Server {
  const { certificate, ca } = options;
  const server = createServer(
    { key: certificate.key, cert: `${certificate.cert}${ca}` },
    listener(options),
  );
  server.keepAliveTimeout = idleMs;
  // Node gives a second more than it announces; the real server does not.
  server.keepAliveTimeoutBuffer = 0;
  server.maxRequestsPerSocket = requestsPerConnection;
  return server;
}

function listener(options: SimulatorServerOptions): RequestListener {
  return (request, response) => {
    answer(options, request, response).catch((error: unknown) => {
      // No reply at all: the client sees the connection end, as it is meant to.
      if (error instanceof ConnectionLost || error instanceof ConnectionRefused) response.destroy();
      else if (!response.headersSent) reply(response, failure(error));
    });
  };
}

async function answer(
  options: SimulatorServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const body = await readBody(request);
  if (body === undefined) {
    reply(response, { status: 501, reason: "for data too large", headers: {}, body: "" });
    return;
  }
  const url = request.url ?? "/";
  const action = /^\/_sim\/([a-z-]+)$/.exec(url)?.[1];
  if (action !== undefined && options.hooks && isLoopback(request)) {
    hook(options, response, { action, body });
    return;
  }
  const sent = await options.target.model().send({
    method: request.method ?? "GET",
    path: url,
    headers: flatHeaders(request),
    body,
  });
  options.beforeReply();
  reply(response, sent);
}

function hook(
  options: SimulatorServerOptions,
  response: ServerResponse,
  { action, body }: { readonly action: string; readonly body: Buffer },
): void {
  const parsed: unknown = body.length === 0 ? {} : JSON.parse(body.toString("utf8"));
  const given = typeof parsed === "object" && parsed !== null ? { ...parsed } : {};
  const result = runHook(options.target, action, given);
  options.afterHook();
  const headers = { "content-type": "application/json" };
  const isKnown = result !== undefined;
  reply(response, {
    status: isKnown ? 200 : 404,
    reason: isKnown ? "OK" : "no such hook",
    headers,
    body: JSON.stringify(result ?? {}),
  });
}

function reply(response: ServerResponse, sent: ApiResponse): void {
  const { status, headers, body } = sent;
  // A reason phrase is made of bytes; what is beyond Latin-1 goes out as UTF-8 bytes.
  const reason = Buffer.from(sent.reason, "utf8").toString("latin1");
  const length = Buffer.byteLength(body);
  // After an error the real server closes the connection.
  const close = status >= 400 ? { connection: "close" } : {};
  response.writeHead(status, reason, { ...headers, "content-length": length, ...close });
  response.end(body);
}

function failure(error: unknown): ApiResponse {
  const reason = error instanceof Error ? error.message.split("\n")[0] : undefined;
  return { status: 500, reason: reason ?? "error", headers: {}, body: "" };
}

async function readBody(request: IncomingMessage): Promise<Buffer | undefined> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request) {
    const piece = Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk));
    bytes += piece.length;
    if (bytes > bodyBytesMax) return undefined;
    chunks.push(piece);
  }
  return Buffer.concat(chunks);
}

function flatHeaders(request: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(request.headers).map(([name, value]) => {
      return [name, Array.isArray(value) ? value.join(", ") : (value ?? "")];
    }),
  );
}

function isLoopback({ socket }: IncomingMessage): boolean {
  const address = socket.remoteAddress ?? "";
  return address === "::1" || address.startsWith("127.") || address.startsWith("::ffff:127.");
}
