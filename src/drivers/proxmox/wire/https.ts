import { once } from "node:events";
import type { ClientRequest, IncomingMessage } from "node:http";
import { Agent, request as httpsRequest } from "node:https";
import type { AgentOptions, RequestOptions } from "node:https";
import type { TLSSocket } from "node:tls";
import type { Clock } from "../../../kernel/clock.ts";
import { guard } from "../../../kernel/guard.ts";
import { redacted } from "../../../kernel/redact.ts";
import { authHeaders, httpForm } from "./wire.ts";
import type { HttpForm, PveReply, PveRequest, Send, StreamedBody } from "./wire.ts";

/** How one endpoint is reached and how it proves who it is. */
export interface HttpsEndpoint {
  /** "https://pve1.example:8006". */
  readonly url: string;
  readonly token: { readonly id: string; readonly secret: string };
  readonly tls: TlsTrust;
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Told until when the certificate is valid that a new connection shows. */
  readonly onCertificate?: (expiresMs: number, url: string) => void;
}

/** By a pinned certificate, by an authority of one's own, or by a public one. */
export interface TlsTrust {
  readonly ca?: string;
  /** SHA-256, in hexadecimal with colons; either case. */
  readonly fingerprints?: readonly string[];
  readonly serverName?: string;
}

/** The server closes idle connections after 5 s; one that is used later may be closing already. */
const idleMs = 3_500;

/** One reply. A full cluster's /cluster/resources stays far below it. */
const replyBytesMax = 64 * 1024 * 1024;

/** One endpoint over HTTPS. Nothing is ever repeated here. */
export function httpsSend(endpoint: HttpsEndpoint): { send: Send; close: () => void } {
  const agent = new Agent({
    keepAlive: true,
    timeout: idleMs,
    maxCachedSessions: 0,
    ...trustOptions(endpoint.tls),
  });
  const send: Send = (request) => exchange(request, endpoint, agent);
  return { send, close: () => agent.destroy() };
}

function trustOptions({ ca, fingerprints, serverName }: TlsTrust): AgentOptions {
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(serverName === undefined ? {} : { servername: serverName }),
    // A pinned certificate is compared by hand below, before a single byte of ours leaves.
    rejectUnauthorized: fingerprints === undefined,
  };
}

/**
 * One exchange. The head of the request, with the token in it, is held back until the connection
 * stands and has proven itself; then the fence is asked and the bytes leave in the same tick.
 */
function exchange(request: PveRequest, endpoint: HttpsEndpoint, agent: Agent): Promise<PveReply> {
  return new Promise((resolve) => {
    let hasLeft = false;
    let isOver = false;
    const { options, body } = httpOptions(request, endpoint);
    const outgoing = httpsRequest({ ...options, agent });
    const waiting = (): (() => void) =>
      endpoint.clock.after(endpoint.timeoutMs, () => {
        fail(new Error(`no answer within ${endpoint.timeoutMs / 1000} s`));
      });
    let cancel = waiting();
    // An upload may take as long as it goes on.
    const goesOn = (): void => {
      cancel();
      if (!isOver) cancel = waiting();
    };
    const settle = (reply: PveReply): void => {
      isOver = true;
      cancel();
      resolve(reply);
      if (reply.type !== "answered") outgoing.destroy();
    };
    const fail = (error: Error): void => {
      const detail = `${endpoint.url}: ${error.message}`;
      settle(
        hasLeft
          ? { type: "lost", detail }
          : { type: "notSent", why: isUntrusted(error) ? "certificate" : "unreachable", detail },
      );
    };
    outgoing.on("error", fail);
    outgoing.on("socket", (plain) => {
      // cast: a request over HTTPS has a TLS socket.
      const socket = plain as TLSSocket;
      onceSecure(socket, endpoint, () => {
        const refusal = refusalOf(socket, endpoint, request);
        if (refusal !== undefined) return settle(refusal);
        hasLeft = true;
        if (typeof body === "string" || body instanceof Uint8Array) outgoing.end(body);
        else upload(body, outgoing, goesOn).catch(fail);
      });
    });
    outgoing.on("response", (incoming) => {
      if (isLast(incoming)) outgoing.shouldKeepAlive = false;
      receive(incoming, endpoint).then(settle, fail);
    });
  });
}

function lengthOf(body: HttpForm["body"]): number {
  const isHeld = typeof body === "string" || body instanceof Uint8Array;
  return isHeld ? Buffer.byteLength(body) : body.lengthBytes;
}

/** Sends a body as fast as the other side takes it, and stops when that hangs up. */
async function upload(
  { chunks }: StreamedBody,
  outgoing: ClientRequest,
  goesOn: () => void,
): Promise<void> {
  for await (const chunk of chunks) {
    if (outgoing.destroyed) return;
    if (!outgoing.write(chunk)) await drained(outgoing);
    goesOn();
  }
  outgoing.end();
}

/** Also when there is nobody left to take more. */
async function drained(outgoing: ClientRequest): Promise<void> {
  const both = new AbortController();
  const { signal } = both;
  const either = [once(outgoing, "drain", { signal }), once(outgoing, "close", { signal })];
  try {
    await Promise.race(either);
  } finally {
    both.abort();
  }
}

/** The server ends a connection after 100 requests (AnyEvent.pm, max_requests per keep-alive). */
const requestsMost = 90;

const requestsOn = new WeakMap<object, number>();

/**
 * Whether a connection has served its last: the server closes it after any error, and after so many
 * requests. One that is just closing would swallow the next request, and nobody knew its outcome.
 */
function isLast({ socket, statusCode = 0 }: IncomingMessage): boolean {
  const served = (requestsOn.get(socket) ?? 0) + 1;
  requestsOn.set(socket, served);
  return statusCode >= 400 || served >= requestsMost;
}

function httpOptions(
  request: PveRequest,
  endpoint: HttpsEndpoint,
): { options: RequestOptions; body: HttpForm["body"] } {
  const url = new URL(endpoint.url);
  const { path, contentType, body } = httpForm(request);
  const options = {
    method: request.method,
    host: url.hostname.replaceAll(/^\[|\]$/g, ""),
    port: url.port === "" ? 8006 : Number(url.port),
    path: `/api2/json${path}`,
    headers: {
      ...authHeaders(request, endpoint.token),
      Accept: "application/json",
      // None on POST needs its length said all the same; and an upload is refused without one.
      ...(contentType === undefined
        ? {}
        : { "Content-Type": contentType, "Content-Length": lengthOf(body) }),
    },
  };
  return { options, body };
}

/**
 * The certificates that connections showed, kept from the moment of their handshake: Node does not
 * tell it any more once a kept connection is used again.
 */
const shown = new WeakMap<TLSSocket, string>();

function onceSecure(
  socket: TLSSocket,
  { onCertificate, url }: HttpsEndpoint,
  then: () => void,
): void {
  // A kept connection is secure already; a new one says when it is.
  if (shown.has(socket)) return then();
  socket.once("secureConnect", () => {
    const certificate = socket.getPeerX509Certificate();
    shown.set(socket, certificate?.fingerprint256 ?? "none");
    if (certificate !== undefined) onCertificate?.(certificate.validToDate.getTime(), url);
    then();
  });
}

function refusalOf(
  socket: TLSSocket,
  { tls, url }: HttpsEndpoint,
  request: PveRequest,
): PveReply | undefined {
  const seen = shown.get(socket) ?? "none";
  const isTrusted =
    tls.fingerprints === undefined ||
    tls.fingerprints.some((fingerprint) => fingerprint.toUpperCase() === seen.toUpperCase());
  if (!guard("wire-certificate", isTrusted)) {
    const detail = `${url} shows the certificate ${seen}, which is not one that was pinned`;
    return { type: "notSent", why: "certificate", detail };
  }
  if (!guard("wire-fence", request.mayWrite === undefined || request.mayWrite())) {
    return { type: "notSent", why: "fenced", detail: "this process may no longer write" };
  }
  return undefined;
}

async function receive(
  incoming: IncomingMessage,
  { url: from, token }: HttpsEndpoint,
): Promise<PveReply> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of incoming) {
    // cast: no encoding was set, so the chunks are bytes.
    const buffer = chunk as Buffer;
    bytes += buffer.length;
    if (bytes > replyBytesMax) throw new Error(`the reply is larger than ${replyBytesMax} bytes`);
    chunks.push(buffer);
  }
  const body = Buffer.concat(chunks).toString("utf8");
  const { statusCode = 0, statusMessage = "" } = incoming;
  const { date } = incoming.headers;
  const time = date === undefined ? {} : { date };
  if (statusCode < 400) {
    return { type: "answered", status: statusCode, reason: statusMessage, body, from, ...time };
  }
  // The words of a refusal are shown to people; a proxy's may repeat what it was sent.
  const cleaned = (text: string): string => {
    return token.secret === "" ? text : text.replaceAll(token.secret, redacted);
  };
  const told = { reason: cleaned(statusMessage), body: cleaned(body) };
  return { type: "answered", status: statusCode, ...told, from, ...time };
}

/** OpenSSL's and Node's own codes for a certificate that does not prove what it should. */
const certificateCodes = new Set([
  "CERT_HAS_EXPIRED",
  "CERT_NOT_YET_VALID",
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "ERR_TLS_CERT_ALTNAME_INVALID",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

function isUntrusted(error: Error): boolean {
  return "code" in error && certificateCodes.has(String(error.code));
}
