import type { Clock } from "../kernel/clock.ts";
import type { Json } from "../kernel/json.ts";
import { ApiError } from "../kernel/status.ts";
import type { WireRequest, WireResponse } from "../kernel/wire.ts";
import { readBody, readLines } from "./body.ts";
import { apiErrorOf, NetworkError } from "./errors.ts";
import { rejectionOf, type Transport } from "./transport.ts";

export interface ExchangeOptions {
  readonly transport: Transport;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly userAgent: string;
}

export interface Call {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly url: string;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * One request and its whole answer, within the deadline. `interpret` may throw: an answer without
 * sense is as good as none. Rejects with an ApiError where the server
 * refused, with a NetworkError where it did not answer, and with the signal's reason where the
 * caller gave up.
 */
export async function exchange<Result>(
  options: ExchangeOptions,
  call: Call,
  interpret: (content: Json) => Result,
): Promise<Result> {
  call.signal?.throwIfAborted();
  const deadline = startDeadline(options, call);
  try {
    const response = await answerOf(options, call, deadline);
    const text = await Promise.race([readBody(response.body, deadline.signal), deadline.rejection]);
    const result = interpret(contentOf(response, text));
    deadline.cancel();
    return result;
  } catch (error) {
    deadline.end();
    throw failureOf(error, call);
  }
}

/**
 * One request whose answer goes on line by line. Only the beginning of the answer has a deadline;
 * whoever reads the lines ends it by the signal or by leaving the loop.
 */
export async function* exchangeLines<Result>(
  options: ExchangeOptions,
  call: Call,
  interpret: (line: Json) => Result,
): AsyncGenerator<Result, void, undefined> {
  call.signal?.throwIfAborted();
  const deadline = startDeadline(options, call);
  try {
    const response = await answerOf(options, call, deadline);
    if (response.status !== 200) {
      contentOf(response, await readBody(response.body, deadline.signal));
    }
    deadline.cancelTimer();
    for await (const line of readLines(response.body, deadline.signal)) {
      yield interpret(parse(line));
    }
  } catch (error) {
    throw failureOf(error, call);
  } finally {
    deadline.end();
  }
}

async function answerOf(
  { transport, userAgent }: ExchangeOptions,
  call: Call,
  { signal, rejection }: Deadline,
): Promise<WireResponse> {
  const body = call.body === undefined ? noBody : encode(call.body);
  const contentType = call.contentType ?? "application/json";
  const request: WireRequest = {
    method: call.method,
    url: call.url,
    headers: {
      accept: "application/json",
      "user-agent": userAgent,
      ...(body.byteLength > 0 ? { "content-type": contentType } : {}),
    },
    body,
  };
  signal.throwIfAborted();
  // A transport that does not heed the signal must not hold us up.
  return Promise.race([transport(request, signal), rejection]);
}

interface Deadline {
  readonly signal: AbortSignal;
  /** Rejects when the signal is aborted; one for all who race against it. */
  readonly rejection: Promise<never>;
  cancelTimer(): void;
  /** For an exchange of which nothing is under way any more: nobody need be told. */
  cancel(): void;
  /** Also gives up whatever of the request is still under way. */
  end(): void;
}

function startDeadline({ clock, timeoutMs }: ExchangeOptions, call: Call): Deadline {
  const controller = new AbortController();
  const onAbort = (): void => controller.abort(new GivenUp(call.signal?.reason));
  if (call.signal?.aborted) onAbort();
  else call.signal?.addEventListener("abort", onAbort, { once: true });
  const cancelTimer = clock.after(timeoutMs, () => {
    controller.abort(new Error(`no answer within ${timeoutMs} ms`));
  });
  const cancel = (): void => {
    cancelTimer();
    call.signal?.removeEventListener("abort", onAbort);
  };
  return {
    signal: controller.signal,
    rejection: rejectionOf(controller.signal),
    cancelTimer,
    cancel,
    end: () => {
      cancel();
      controller.abort(new Error("the exchange has ended"));
    },
  };
}

/** The caller's own signal was aborted. */
class GivenUp extends Error {
  readonly reason: unknown;

  constructor(reason: unknown) {
    super("the caller gave up");
    this.reason = reason;
  }
}

function contentOf(response: WireResponse, text: string): Json {
  if (response.status >= 200 && response.status < 300) return parse(text);
  let body: Json | undefined;
  try {
    body = parse(text);
  } catch {
    // A proxy's error page is not JSON; its text goes into the error.
    body = undefined;
  }
  throw apiErrorOf(response.status, body, text);
}

function failureOf(error: unknown, call: Call): unknown {
  if (error instanceof ApiError) return error;
  const isRead = call.method === "GET";
  if (error instanceof GivenUp && isRead) return error.reason;
  if (error instanceof NetworkError) return error;
  const cause = error instanceof GivenUp ? error.reason : error;
  const why = cause instanceof Error ? cause.message : String(cause);
  const what = `${call.method} ${call.url}`;
  if (isRead) return new NetworkError("Unreachable", `${what}: ${why}`, { cause });
  const unknown = `${what}: ${why}; whether it was done is not known`;
  return new NetworkError("UnknownOutcome", unknown, { cause });
}

const encoder = new TextEncoder();
const noBody = new Uint8Array();

function encode(body: unknown): Uint8Array {
  return encoder.encode(JSON.stringify(body));
}

function parse(text: string): Json {
  // cast: what JSON.parse returns is JSON.
  return JSON.parse(text) as Json;
}
