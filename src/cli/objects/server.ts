import { NetworkError, type Transport } from "../../client/index.ts";
import { sleep, type Clock } from "../../kernel/clock.ts";
import { isJsonObject, type Json } from "../../kernel/json.ts";
import { ApiError } from "../../kernel/status.ts";
import type { WireResponse } from "../../kernel/wire.ts";
import { readLines, readText } from "./answer-body.ts";

/** One request to a server, of any kind. The path begins with a slash and is encoded. */
export interface Request {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly path: string;
  readonly query?: Readonly<Record<string, string | number | undefined>>;
  readonly body?: unknown;
  readonly contentType?: string;
  readonly accept?: string;
  readonly signal?: AbortSignal | undefined;
}

/**
 * A Kubernetes API, embedded or not, as the commands speak to it: with kinds that are known only
 * from discovery, and with the media types of tables, which the typed client has no use for.
 */
export interface Server {
  readonly url: string;
  /** The namespace of the context. */
  readonly namespace: string;
  readonly clock: Clock;
  /** The answer as JSON. Rejects with an ApiError or a NetworkError. */
  ask(request: Request): Promise<Json>;
  /** The answer as it comes, for what is no JSON. */
  askText(request: Request): Promise<string>;
  /** The lines of an answer that goes on, until the server ends it or the signal is aborted. */
  follow(request: Request): AsyncGenerator<Json, void, undefined>;
  /** Warnings that the server gave along with its answers, each once. */
  readonly warnings: ReadonlySet<string>;
}

export interface ServerOptions {
  readonly url: string;
  readonly namespace: string;
  readonly send: Transport;
  readonly clock: Clock;
}

/** A server that is alive answers within this; people should not wait longer to hear it is not. */
const answerWithinMs = 30_000;

export function createServer(options: ServerOptions): Server {
  const warnings = new Set<string>();
  const begin = async (request: Request, signal: AbortSignal): Promise<WireResponse> => {
    const response = await options.send(wireRequest(request), signal);
    noteWarnings(response.headers["warning"], warnings);
    if (response.status >= 200 && response.status < 300) return response;
    throw refusalOf(response.status, await readText(response.body, signal));
  };
  const askText = (request: Request): Promise<string> => {
    return withDeadline(options.clock, request, async (signal) => {
      const response = await begin(request, signal);
      return await readText(response.body, signal);
    });
  };
  return {
    ...options,
    warnings,
    askText,
    ask: async (request) => parse(await askText(request)),
    async *follow(request) {
      const controller = new AbortController();
      const stop = (): void => controller.abort(request.signal?.reason);
      request.signal?.addEventListener("abort", stop, { once: true });
      if (request.signal?.aborted) stop();
      try {
        const response = await begin(request, controller.signal);
        for await (const line of readLines(response.body, controller.signal)) yield parse(line);
      } finally {
        request.signal?.removeEventListener("abort", stop);
        controller.abort(new Error("the watch has ended"));
      }
    },
  };
}

async function withDeadline<Result>(
  clock: Clock,
  request: Request,
  work: (signal: AbortSignal) => Promise<Result>,
): Promise<Result> {
  const ended = new AbortController();
  const signal = request.signal ? AbortSignal.any([ended.signal, request.signal]) : ended.signal;
  const late = sleep(clock, answerWithinMs, ended.signal).then(() => {
    throw new NetworkError("Unreachable", `no answer within ${answerWithinMs / 1000} seconds`);
  });
  late.catch(() => undefined);
  try {
    return await Promise.race([work(signal), late]);
  } finally {
    ended.abort(new Error("the exchange has ended"));
  }
}

function wireRequest(request: Request): Parameters<Transport>[0] {
  const { body, accept = "application/json", contentType = "application/json" } = request;
  const bytes = body === undefined ? "" : JSON.stringify(body);
  return {
    method: request.method ?? "GET",
    url: request.path + queryString(request.query ?? {}),
    headers: {
      accept,
      "user-agent": "berth",
      ...(bytes === "" ? {} : { "content-type": contentType }),
    },
    body: new TextEncoder().encode(bytes),
  };
}

function queryString(query: NonNullable<Request["query"]>): string {
  const parts = Object.entries(query).flatMap(([key, value]) => {
    return value === undefined ? [] : [`${key}=${encodeURIComponent(String(value))}`];
  });
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

/** `299 - "text"`, possibly several, as RFC 7234 has them. */
function noteWarnings(header: string | undefined, warnings: Set<string>): void {
  for (const [, text = ""] of (header ?? "").matchAll(/299 [^ ]+ "((?:\\.|[^"\\])*)"/g)) {
    warnings.add(text.replaceAll(/\\(.)/g, "$1"));
  }
}

function refusalOf(httpStatus: number, text: string): ApiError {
  const body = tryParse(text);
  if (!isJsonObject(body) || body["kind"] !== "Status") {
    return new ApiError(httpStatus, "", `the server answered ${httpStatus}: ${text.slice(0, 200)}`);
  }
  const { code, reason, message, details } = body;
  return new ApiError(
    typeof code === "number" ? code : httpStatus,
    typeof reason === "string" ? reason : "",
    typeof message === "string" ? message : `the server answered ${httpStatus}`,
    isJsonObject(details) ? details : undefined,
  );
}

function tryParse(text: string): Json | undefined {
  try {
    return parse(text);
  } catch {
    // A proxy's error page is not JSON; its text goes into the error.
    return undefined;
  }
}

function parse(text: string): Json {
  // cast: what JSON.parse returns is JSON.
  return JSON.parse(text) as Json;
}
