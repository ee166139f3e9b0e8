import { Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest } from "node:https";
import type { ClientRequest, RequestOptions } from "node:http";
import type { Socket } from "node:net";
import { limits } from "../kernel/limits.ts";
import type { WireRequest, WireResponse, WireStream } from "../kernel/wire.ts";
import { NetworkError } from "./errors.ts";
import type { Connection } from "./kubeconfig.ts";
import type { Transport } from "./transport.ts";

/** Connections at once. Each watch holds one for as long as it lasts. */
const socketsMax = 256;
/** TCP asks so often whether the other side is still there. */
const keepAliveMs = 30_000;

export interface HttpsTransport {
  readonly send: Transport;
  /** Closes every connection; requests under way fail. */
  close(): void;
}

/** A transport over HTTPS with keep-alive. `http:` is for a proxy on the same machine. */
export function createHttpsTransport(connection: Connection): HttpsTransport {
  const base = new URL(connection.server);
  const isTls = base.protocol === "https:";
  const agentOptions = { keepAlive: true, keepAliveMsecs: keepAliveMs, maxSockets: socketsMax };
  const agent = isTls
    ? new HttpsAgent({ ...agentOptions, ...tlsOptions(connection) })
    : new HttpAgent(agentOptions);
  const start = isTls ? httpsRequest : httpRequest;
  return {
    send: (request, signal) => {
      return exchangeOver(
        start(requestOptions(request, base, { agent, connection })),
        request,
        signal,
      );
    },
    close: () => agent.destroy(),
  };
}

function tlsOptions(connection: Connection): object {
  const { ca, certificate, key, tlsServerName, insecure } = connection;
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(certificate === undefined ? {} : { cert: certificate, key }),
    ...(tlsServerName === undefined ? {} : { servername: tlsServerName }),
    ...(insecure === true ? { rejectUnauthorized: false } : {}),
  };
}

function requestOptions(
  request: WireRequest,
  base: URL,
  { agent, connection }: { agent: HttpAgent; connection: Connection },
): RequestOptions {
  const token = connection.currentToken?.() ?? connection.token;
  return {
    agent,
    // Node takes an IPv6 address only without the brackets that a URL puts around it.
    host: base.hostname.replaceAll(/^\[|\]$/g, ""),
    ...(base.port === "" ? {} : { port: Number(base.port) }),
    method: request.method,
    path: `${base.pathname.replace(/\/$/, "")}${request.url}`,
    headers: {
      ...request.headers,
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      "content-length": request.body.byteLength,
    },
  };
}

function exchangeOver(
  outgoing: ClientRequest,
  request: WireRequest,
  signal: AbortSignal | undefined,
): Promise<WireResponse> {
  const { promise, resolve, reject } = Promise.withResolvers<WireResponse>();
  const connected = followConnection(outgoing);
  let incoming: IncomingMessage | undefined;
  const abort = (): void => {
    if (incoming?.complete !== true) outgoing.destroy(toError(signal?.reason));
  };
  outgoing.on("error", (error) => reject(connected() ? error : unreachable(outgoing, error)));
  outgoing.on("response", (response) => {
    incoming = response;
    resolve(toWire(response));
  });
  outgoing.on("close", () => signal?.removeEventListener("abort", abort));
  if (signal?.aborted) abort();
  else signal?.addEventListener("abort", abort, { once: true });
  outgoing.end(request.body);
  return promise;
}

/**
 * Whether the request may have reached the server. It is written as soon as the connection stands,
 * with TLS after the certificate was found good; before that, nothing was sent.
 */
function followConnection(outgoing: ClientRequest): () => boolean {
  let isConnected = false;
  outgoing.on("socket", (socket: Socket) => {
    const event = "encrypted" in socket ? "secureConnect" : "connect";
    if (outgoing.reusedSocket || !socket.connecting) isConnected = true;
    else socket.once(event, () => (isConnected = true));
  });
  return () => isConnected;
}

function unreachable(outgoing: ClientRequest, cause: Error): NetworkError {
  const message = `${outgoing.host} cannot be reached: ${cause.message}`;
  return new NetworkError("Unreachable", message, { cause });
}

function toWire(response: IncomingMessage): WireResponse {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(response.headers)) {
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(", ") : value;
  }
  return {
    status: response.statusCode ?? 0,
    headers,
    body: streamOf(response),
  };
}

/**
 * The body as it comes. A connection that breaks ends it: whoever reads sees that the text is not
 * complete. A reader that falls far behind is cut off, and comes again.
 */
function streamOf(response: IncomingMessage): WireStream {
  return {
    start: (sink) => {
      response.on("data", (chunk: Buffer) => {
        sink.write(chunk);
        if (sink.bufferedBytes() > limits.watchBufferBytes) response.destroy();
      });
      response.on("error", () => sink.end());
      response.on("close", () => sink.end());
      response.on("end", () => sink.end());
      return () => {
        // After a complete body the connection goes back to the others; it must not be destroyed.
        if (!response.complete) response.destroy();
      };
    },
  };
}

function toError(reason: unknown): Error {
  return reason instanceof Error ? reason : new Error(String(reason));
}
