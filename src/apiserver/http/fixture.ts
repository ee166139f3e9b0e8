import { once } from "node:events";
import type { Agent, ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { text } from "node:stream/consumers";
import type { TLSSocket } from "node:tls";
import { connect } from "node:tls";
import type { WireRequest, WireResponse } from "../../kernel/wire.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import type { LogLine } from "../fixture.ts";
import { createLogBook, createSeededRandom } from "../fixture.ts";
import type { KeyPair } from "../pki/index.ts";
import { createAuthority, issueServerCertificate, localNames } from "../pki/index.ts";
import type { Listener, Served } from "./index.ts";
import { listen } from "./index.ts";

/** What the tests of the transport share: real sockets on loopback, and a server behind them. */

// Node judges certificates by its own clock, so these have to be of today.
const pkiClock = new VirtualClock(performance.timeOrigin);
const environment = { clock: pkiClock, random: createSeededRandom(3) };
export const authority = await createAuthority(environment);

export function issueTestCertificate(): Promise<KeyPair> {
  return issueServerCertificate(authority, localNames, environment);
}

export const certificate = await issueTestCertificate();

export interface Harness extends AsyncDisposable {
  readonly listener: Listener;
  readonly port: number;
  readonly clock: VirtualClock;
  readonly lines: LogLine[];
  /** Every request that reached the server. */
  readonly requests: WireRequest[];
}

export type Handler = (request: WireRequest) => Promise<WireResponse> | WireResponse;

/** Listens on a free port. Whoever says "Bearer good" is known. */
export async function createHarness(handler: Handler, close = (): void => {}): Promise<Harness> {
  const clock = new VirtualClock();
  const { log, lines } = createLogBook();
  const requests: WireRequest[] = [];
  const server: Served = {
    handle: async (request) => {
      requests.push(request);
      return handler(request);
    },
    knows: (headers) => headers["authorization"] === "Bearer good",
    close,
  };
  const options = { server, tls: certificate, host: "127.0.0.1", port: 0, clock, log };
  const listener = await listen(options);
  const dispose = async (): Promise<void> => {
    const closed = listener.close(0);
    clock.advance(0);
    await closed;
  };
  const { port } = listener;
  return { listener, port, clock, lines, requests, [Symbol.asyncDispose]: dispose };
}

export function ok(body: string | Uint8Array): WireResponse {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  return { status: 200, headers: { "content-type": "text/plain" }, body: bytes };
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export interface AskOptions {
  readonly method?: string;
  readonly path?: string;
  readonly headers?: Record<string, string>;
  readonly body?: string | Uint8Array;
  readonly agent?: Agent;
}

/** One request by node's own client. */
export async function ask(harness: Harness, options: AskOptions = {}): Promise<Answer> {
  const request = open(harness, options);
  request.end(options.body);
  const [response] = (await once(request, "response")) as [IncomingMessage];
  // What happens to the connection after the answer began is no concern of the test.
  request.on("error", () => {});
  const { statusCode = 0, headers } = response;
  return { status: statusCode, headers, body: await text(response) };
}

/** A request that is not ended yet. */
export function open(harness: Harness, options: AskOptions = {}): ClientRequest {
  const { method = "GET", path = "/", headers = {}, agent } = options;
  const request: RequestOptions = { host: "127.0.0.1", port: harness.port, method, path, headers };
  return httpsRequest({ ...request, ca: authority.cert, agent: agent ?? false });
}

/** A bare TLS connection, for what no client would send. */
export async function dial(port: number): Promise<TLSSocket> {
  const socket = connect({
    port,
    host: "127.0.0.1",
    ca: authority.cert,
    ALPNProtocols: ["http/1.1"],
  });
  await once(socket, "secureConnect");
  return socket;
}

/** Everything that comes until the other side closes, even if it resets. */
export async function readAll(socket: TLSSocket): Promise<string> {
  const chunks: Buffer[] = [];
  socket.on("data", (chunk: Buffer) => chunks.push(chunk));
  await new Promise<void>((resolve) => {
    socket
      .once("end", resolve)
      .once("error", () => resolve())
      .once("close", () => resolve());
  });
  socket.destroy();
  return Buffer.concat(chunks).toString();
}

/** Waits for something that happens on the other end of a socket, turn by turn. */
export async function until(condition: () => boolean, what: string): Promise<void> {
  for (let turn = 0; turn < 20_000; turn += 1) {
    if (condition()) return;
    await new Promise((resolve) => setImmediate(resolve));
  }
  throw new Error(`it never came to this: ${what}`);
}
