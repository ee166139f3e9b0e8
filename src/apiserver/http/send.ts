import type { OutgoingHttpHeaders } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { WireResponse } from "../../kernel/wire.ts";
import { isStream } from "../../kernel/wire.ts";
import { blocksOf } from "./blocks.ts";
import { bounds } from "./bounds.ts";
import type { Recipient } from "./recipient.ts";
import { cutIfStalled } from "./recipient.ts";
import { sendStream } from "./send-stream.ts";

const done = Promise.resolve();

/**
 * Writes an answer. Small ones leave in one go; large ones in blocks, each when the one before was
 * taken, so that others are served in between; streams as they come.
 */
export function send(to: Recipient, answer: WireResponse): Promise<void> {
  // Nobody is there any more. A stream is not even started.
  if (to.response.destroyed) return done;
  const { body } = answer;
  if (isStream(body)) {
    to.response.writeHead(answer.status, headersOf(to, answer));
    sendStream(to, body);
    return done;
  }
  const pieces = body instanceof Uint8Array ? [body] : body;
  const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0);
  if (isWorthCompressing(to, answer, bytes)) return sendCompressed(to, answer, pieces);
  const headers = headersOf(to, answer, bytes);
  to.response.writeHead(answer.status, headers);
  if (bytes > bounds.blockBytes) return sendBlocks(to, pieces);
  // What is smaller disappears into the socket's own buffer, and is not worth a timer.
  if (bytes > bounds.guardBytes) cutIfStalled(to);
  to.response.end(pieces.length === 1 ? pieces[0] : Buffer.concat(pieces, bytes));
  return done;
}

function headersOf(to: Recipient, answer: WireResponse, bytes?: number): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {
    // Objects change and are nobody else's business. Who knows better says so in the answer.
    "cache-control": "no-cache, private",
    ...answer.headers,
  };
  // These two have no body, and the length would be taken for that of the full answer.
  if (bytes !== undefined && answer.status !== 304 && answer.status !== 204) {
    headers["content-length"] = bytes;
  }
  if (to.isLast) headers["connection"] = "close";
  return headers;
}

async function sendBlocks(to: Recipient, pieces: readonly Uint8Array[]): Promise<void> {
  const progress = cutIfStalled(to);
  for (const block of blocksOf(pieces, bounds.blockBytes)) {
    if (!to.response.write(block)) await drained(to);
    if (to.response.destroyed) return;
    progress();
  }
  to.response.end();
}

/** Resolves when the client took what was written, or is gone. */
function drained({ response }: Recipient): Promise<void> {
  if (response.closed) return done;
  return new Promise((resolve) => {
    const settle = (): void => {
      response.off("drain", settle).off("close", settle);
      resolve();
    };
    response.on("drain", settle).on("close", settle);
  });
}

function isWorthCompressing(to: Recipient, answer: WireResponse, bytes: number): boolean {
  if (!to.acceptsGzip || bytes <= bounds.compressBytesMin) return false;
  return answer.headers["content-encoding"] === undefined;
}

/** The fastest level, as kube-apiserver. The work is done on other threads. */
async function sendCompressed(
  to: Recipient,
  answer: WireResponse,
  pieces: readonly Uint8Array[],
): Promise<void> {
  const { response } = to;
  const vary = answer.headers["vary"];
  response.writeHead(answer.status, {
    ...headersOf(to, answer),
    "content-encoding": "gzip",
    vary: vary === undefined ? "Accept-Encoding" : `${vary}, Accept-Encoding`,
  });
  const progress = cutIfStalled(to);
  try {
    const blocks = Readable.from(noting(blocksOf(pieces, bounds.blockBytes), progress));
    await pipeline(blocks, createGzip({ level: 1 }), response);
  } catch (error) {
    // The client went away in the middle; there is nobody left to tell.
    if (!response.destroyed) throw error;
  }
}

/** The same blocks; says so each time that another one is wanted. */
function* noting<T>(blocks: Iterable<T>, wanted: () => void): Generator<T, void, undefined> {
  for (const block of blocks) {
    wanted();
    yield block;
  }
}
