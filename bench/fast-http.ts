import { connect, type TLSSocket } from "node:tls";

export interface Target {
  readonly url: string;
  readonly ca: string;
  readonly token: string;
}

export interface FastReply {
  readonly status: number;
  readonly body: Buffer;
}

/**
 * One keep-alive connection that sends a request and waits for its answer, with as little work of
 * its own as possible: on a small machine the load generator must not be what is measured. It
 * understands just what API servers answer with: a content length or chunks.
 */
export interface FastConnection {
  ask(method: string, path: string, body?: string): Promise<FastReply>;
  close(): void;
}

export async function openFast(target: Target): Promise<FastConnection> {
  const { hostname, port, host } = new URL(target.url);
  const socket = connect({ host: hostname, port: Number(port), ca: target.ca });
  socket.setNoDelay(true);
  await new Promise<void>((resolve, reject) => {
    socket.once("secureConnect", resolve);
    socket.once("error", reject);
  });
  const common = `Host: ${host}\r\nAuthorization: Bearer ${target.token}\r\n`;
  return {
    ask: (method, path, body) => {
      const length = body === undefined ? 0 : Buffer.byteLength(body);
      const type = body === undefined ? "" : "Content-Type: application/json\r\n";
      const start = `${method} ${path} HTTP/1.1\r\n`;
      const head = `${start}${common}${type}Content-Length: ${length}\r\n\r\n`;
      const reply = readReply(socket);
      socket.write(head + (body ?? ""));
      return reply;
    },
    close: () => socket.destroy(),
  };
}

function readReply(socket: TLSSocket): Promise<FastReply> {
  return new Promise((resolve, reject) => {
    let chunks: Buffer[] = [];
    let received = 0;
    let expected: Expected | undefined;
    const finish = (reply: FastReply): void => {
      socket.off("data", onData);
      socket.off("error", reject);
      resolve(reply);
    };
    const onData = (chunk: Buffer): void => {
      chunks.push(chunk);
      received += chunk.length;
      if (expected === undefined) {
        const whole = chunks.length === 1 ? chunk : Buffer.concat(chunks);
        expected = expectedOf(whole);
        chunks = [whole];
      }
      if (expected === undefined || received < expected.bytes) return;
      if (expected.isChunked && !endsWithLastChunk(chunks)) return;
      const whole = Buffer.concat(chunks);
      finish({ status: expected.status, body: bodyOf(whole, expected) });
    };
    socket.on("data", onData);
    socket.once("error", reject);
  });
}

interface Expected {
  readonly status: number;
  readonly bodyStart: number;
  readonly isChunked: boolean;
  /** At least so many bytes belong to the answer. */
  readonly bytes: number;
}

const lastChunk = Buffer.from("0\r\n\r\n");

function endsWithLastChunk(chunks: readonly Buffer[]): boolean {
  return Buffer.concat(chunks.slice(-5)).subarray(-5).equals(lastChunk);
}

function expectedOf(received: Buffer): Expected | undefined {
  const headEnd = received.indexOf("\r\n\r\n");
  if (headEnd < 0) return undefined;
  const head = received.toString("latin1", 0, headEnd);
  const status = Number(head.slice(9, 12));
  const length = /content-length: (\d+)/i.exec(head)?.[1];
  const bodyStart = headEnd + 4;
  if (length === undefined) return { status, bodyStart, isChunked: true, bytes: bodyStart + 5 };
  return { status, bodyStart, isChunked: false, bytes: bodyStart + Number(length) };
}

function bodyOf(whole: Buffer, expected: Expected): Buffer {
  const body = whole.subarray(expected.bodyStart);
  if (!expected.isChunked) return body;
  const parts: Buffer[] = [];
  for (let at = 0; ;) {
    const lineEnd = body.indexOf("\r\n", at);
    const size = Number.parseInt(body.toString("latin1", at, lineEnd), 16);
    if (!(size > 0)) return Buffer.concat(parts);
    parts.push(body.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = lineEnd + 2 + size + 2;
  }
}
