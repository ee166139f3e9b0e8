import { Agent, request as httpsRequest } from "node:https";
import type { Berth } from "./berth.ts";

export interface Reply {
  readonly status: number;
  readonly headers: Record<string, string | string[] | undefined>;
  readonly text: string;
}

/** The parsed body; tests look into it freely. */
// oxlint-disable-next-line typescript/no-explicit-any -- tests read arbitrary JSON bodies
export function bodyOf(reply: Reply): any {
  return JSON.parse(reply.text);
}

export interface Ask {
  readonly method?: string;
  readonly path: string;
  readonly body?: unknown;
  readonly raw?: string | Buffer;
  readonly type?: string;
  readonly token?: string | null;
  readonly headers?: Record<string, string>;
}

/** A plain HTTPS client of one server: no retries, no caching, so that nothing hides a fault. */
export interface Http {
  ask(ask: Ask): Promise<Reply>;
  close(): void;
}

export function connect(berth: Pick<Berth, "url" | "ca" | "token">, sockets = 64): Http {
  const agent = new Agent({ keepAlive: true, maxSockets: sockets, ca: berth.ca });
  return {
    ask: (ask) => send(berth, agent, ask),
    close: () => agent.destroy(),
  };
}

function send(berth: Pick<Berth, "url" | "token">, agent: Agent, ask: Ask): Promise<Reply> {
  const body = ask.raw ?? (ask.body === undefined ? undefined : JSON.stringify(ask.body));
  const token = ask.token === undefined ? berth.token : ask.token;
  return new Promise((resolve, reject) => {
    const request = httpsRequest(
      new URL(ask.path, berth.url),
      {
        method: ask.method ?? "GET",
        agent,
        headers: {
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(body === undefined ? {} : { "content-type": ask.type ?? "application/json" }),
          ...ask.headers,
        },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () => {
          const text = Buffer.concat(chunks).toString();
          resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
        });
      },
    );
    request.on("error", reject);
    request.end(body);
  });
}

/** Follows a watch line by line until the connection ends; resolves then. */
export function follow(
  berth: Pick<Berth, "url" | "ca" | "token">,
  path: string,
  // oxlint-disable-next-line typescript/no-explicit-any -- tests read arbitrary JSON events
  onEvent: (event: any) => void,
): { readonly ended: Promise<void>; readonly opened: Promise<void>; stop(): void } {
  const opened = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  opened.promise.catch(() => undefined);
  const request = httpsRequest(
    new URL(path, berth.url),
    { ca: berth.ca, headers: { authorization: `Bearer ${berth.token}` } },
    (response) => {
      let rest = "";
      opened.resolve();
      response.on("data", (chunk: Buffer) => {
        const lines = (rest + chunk.toString()).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) if (line !== "") onEvent(JSON.parse(line));
      });
      response.on("error", () => ended.resolve());
      response.on("close", () => ended.resolve());
    },
  );
  request.on("error", (error) => {
    opened.reject(error);
    ended.resolve();
  });
  request.end();
  return { ended: ended.promise, opened: opened.promise, stop: () => request.destroy() };
}
