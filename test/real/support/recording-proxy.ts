import type { IncomingMessage, ServerResponse } from "node:http";
import { Agent, createServer, request as httpsRequest } from "node:https";
import type { AddressInfo } from "node:net";
import {
  createAuthority,
  fingerprintOf,
  issueServerCertificate,
} from "../../../src/apiserver/index.ts";
import { systemClock, systemRandom } from "../../../src/app/system.ts";

/** One request that came through, and how long it was open here: head received to reply sent. */
export interface Exchange {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly body: string;
  readonly beginMs: number;
  endMs: number;
  status: number;
}

/**
 * A hypervisor's door that writes down who came through it, with a certificate of its own. Nothing
 * is changed and nothing is repeated.
 */
export interface RecordingProxy {
  readonly url: string;
  readonly fingerprint: string;
  readonly exchanges: Exchange[];
  /** Connections that were opened, also those over which no request came. */
  connections(): number;
  close(): Promise<void>;
}

export async function startRecordingProxy(
  target: { readonly url: string; readonly ca: string },
  port = 0,
): Promise<RecordingProxy> {
  const environment = { clock: systemClock, random: systemRandom };
  const authority = await createAuthority(environment);
  const { key, cert } = await issueServerCertificate(authority, ["127.0.0.1"], environment);
  // Shorter than the server's own limit: a connection that it is about to close is not used again.
  const agent = new Agent({ keepAlive: true, ca: target.ca, timeout: 3_500 });
  const exchanges: Exchange[] = [];
  let connections = 0;
  const server = createServer({ key, cert }, (incoming, outgoing) => {
    void pass({ incoming, outgoing, agent, exchanges, target });
  });
  server.on("connection", () => (connections += 1));
  server.keepAliveTimeout = 5_000;
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", resolve);
  });
  // cast: it listens on a port.
  const { port: own } = server.address() as AddressInfo;
  return {
    url: `https://127.0.0.1:${own}`,
    fingerprint: fingerprintOf(cert),
    exchanges,
    connections: () => connections,
    close: () => {
      agent.destroy();
      server.closeAllConnections();
      return new Promise((resolve) => void server.close(() => resolve()));
    },
  };
}

interface Passage {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly agent: Agent;
  readonly exchanges: Exchange[];
  readonly target: { readonly url: string };
}

async function pass({ incoming, outgoing, agent, exchanges, target }: Passage): Promise<void> {
  const { method = "GET", url = "/", headers } = incoming;
  const beginMs = Date.now();
  const body = await bytesOf(incoming);
  const exchange = { method, path: url, body: body.toString(), beginMs, endMs: 0, status: 0 };
  exchanges.push(exchange);
  const { host: _host, connection: _connection, ...passed } = headers;
  const options = { method, agent, headers: passed };
  const onward = httpsRequest(new URL(url, target.url), options, (reply) => {
    exchange.status = reply.statusCode ?? 0;
    const { connection: _closing, ...rest } = reply.headers;
    outgoing.writeHead(exchange.status, reply.statusMessage ?? "", rest);
    outgoing.once("finish", () => (exchange.endMs = Date.now()));
    reply.pipe(outgoing);
  });
  // As if the hypervisor itself had hung up.
  onward.on("error", () => outgoing.destroy());
  onward.end(body);
}

async function bytesOf(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  // cast: no encoding was set, so the chunks are bytes.
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
