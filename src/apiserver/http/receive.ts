import type { IncomingMessage, ServerResponse } from "node:http";
import type { ApiError } from "../../kernel/status.ts";
import { limits } from "../../kernel/limits.ts";
import {
  ApiError as Refusal,
  tooLarge,
  unauthorized,
  unsupportedMediaType,
} from "../../kernel/status.ts";
import { bounds } from "./bounds.ts";
import type { Connections } from "./connections.ts";
import type { ListenOptions, Served } from "./options.ts";
import type { Announced, BodyBudget, BodyResult } from "./read-body.ts";
import { announcedBody, readBody } from "./read-body.ts";
import { refuseBody } from "./refuse.ts";
import { send } from "./send.ts";

export type Receive = (request: IncomingMessage, response: ServerResponse) => void;

const noBody = new Uint8Array(0);

/** Turns what arrives into requests, and hands the answers to their senders. */
export function createReceiver(options: ListenOptions, connections: Connections): Receive {
  const { server, clock } = options;
  const budget: BodyBudget = { usedBytes: 0, maxBytes: bounds.bodiesBytes };
  return (request, response) => {
    connections.track(response);
    const announced = announcedBody(request);
    const refusal =
      connections.activeCount() > bounds.requestsMax
        ? overloaded()
        : refusalOf(request, announced, server);
    if (refusal !== undefined) return refuseBody(request, response, { error: refusal, clock });
    const serve = (body: Uint8Array): void => {
      answer({ request, response, body }, options, connections);
    };
    if (announced.body === "none") return serve(noBody);
    if (request.headers.expect !== undefined) response.writeContinue();
    readBody(request, budget, (result: BodyResult) => {
      if (result.ok) return serve(result.body);
      const error = result.why === "tooLarge" ? bodyTooLarge() : overloaded();
      refuseBody(request, response, { error, clock });
    });
  };
}

interface Received {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly body: Uint8Array;
}

function answer(received: Received, options: ListenOptions, connections: Connections): void {
  const { request, response, body } = received;
  const { clock, log } = options;
  const headers = wireHeaders(request);
  const wire = { method: request.method ?? "", url: request.url ?? "", headers, body };
  options.server
    .handle(wire, request.socket)
    .then((answered) => {
      const acceptsGzip = acceptsCompressed(request);
      return send({ response, clock, acceptsGzip, isLast: connections.isClosing }, answered);
    })
    .catch((error: unknown) => {
      const name = error instanceof Error ? error.name : typeof error;
      log("error", "an answer could not be sent", { error: name });
      response.destroy();
    });
}

/** The only header that node gives as a list. Requests have no use for it. */
function wireHeaders(request: IncomingMessage): Readonly<Record<string, string>> {
  delete request.headers["set-cookie"];
  // cast: without it, every header that node gives is one text.
  return request.headers as Record<string, string>;
}

/** Why a body is not even read. */
function refusalOf(
  request: IncomingMessage,
  announced: Announced,
  server: Served,
): ApiError | undefined {
  if (announced.body === "none") return undefined;
  if (announced.body === "sized" && announced.bytes > limits.requestBodyBytes) {
    return bodyTooLarge();
  }
  const encoding = request.headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    return unsupportedMediaType("the body of a request must not be compressed");
  }
  const isSmall = announced.body === "sized" && announced.bytes <= bounds.strangerBodyBytes;
  return isSmall || server.knows(wireHeaders(request)) ? undefined : unauthorized();
}

function bodyTooLarge(): ApiError {
  return tooLarge(`Request entity too large: limit is ${limits.requestBodyBytes}`);
}

function overloaded(): ApiError {
  const message = "too many requests are under way, please try again";
  return new Refusal(429, "TooManyRequests", message, { retryAfterSeconds: 1 });
}

/**
 * Compressing pays where a network is between the two. On the same machine it does not: a list of
 * 10,000 machines (17 MB) took 100 to 200 ms to compress at the fastest level and 50 to 130 ms to
 * unpack, and 10 to 30 ms to encrypt as it is.
 */
function acceptsCompressed(request: IncomingMessage): boolean {
  if (!/\bgzip\b/.test(request.headers["accept-encoding"]?.toString() ?? "")) return false;
  return !isLoopback(request.socket.remoteAddress ?? "");
}

function isLoopback(address: string): boolean {
  return address === "::1" || address.startsWith("127.") || address.startsWith("::ffff:127.");
}
