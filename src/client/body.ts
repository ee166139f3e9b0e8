import { isStream, type WireResponse, type WireSink, type WireStream } from "../kernel/wire.ts";
import { rejectionOf } from "./transport.ts";

/** A page of a list is far smaller; a server that sends more is not one of ours. */
const bodyBytesMax = 256 * 1024 * 1024;
/** One line of a watch: an object, with room for what surrounds it. */
const lineBytesMax = 16 * 1024 * 1024;

const newline = 0x0a;

/** The whole body as text. */
export async function readBody(body: WireResponse["body"], signal: AbortSignal): Promise<string> {
  if (!isStream(body)) return decodeAll(body instanceof Uint8Array ? [body] : body);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of readChunks(body, signal)) {
    bytes += chunk.byteLength;
    if (bytes > bodyBytesMax) throw new Error(`the answer has more than ${bodyBytesMax} bytes`);
    chunks.push(chunk);
  }
  return decodeAll(chunks);
}

/** The lines of a body, as they come. What follows the last line break is torn, and left out. */
export async function* readLines(
  body: WireResponse["body"],
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  let rest = Buffer.alloc(0);
  for await (const chunk of chunksOf(body, signal)) {
    rest = rest.byteLength === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
    let start = 0;
    for (let end = rest.indexOf(newline); end >= 0; end = rest.indexOf(newline, start)) {
      const line = rest.toString("utf8", start, end).trim();
      start = end + 1;
      if (line !== "") yield line;
    }
    rest = rest.subarray(start);
    if (rest.byteLength > lineBytesMax)
      throw new Error(`a line has more than ${lineBytesMax} bytes`);
  }
}

async function* chunksOf(
  body: WireResponse["body"],
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (isStream(body)) yield* readChunks(body, signal);
  else yield* body instanceof Uint8Array ? [body] : body;
}

/** What a stream writes, until either side ends. Leaving the loop tells the stream that we left. */
async function* readChunks(
  stream: WireStream,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const inbox = new Inbox();
  const aborted = rejectionOf(signal);
  const leave = stream.start(inbox);
  try {
    for (;;) {
      const chunk = inbox.take();
      if (chunk !== undefined) yield chunk;
      else if (inbox.isEnded) return;
      else await Promise.race([inbox.changed(), aborted]);
      signal.throwIfAborted();
    }
  } finally {
    leave();
  }
}

/** Keeps what was written until it is taken. */
class Inbox implements WireSink {
  readonly #chunks: Uint8Array[] = [];
  #bytes = 0;
  #wake: (() => void) | undefined;
  isEnded = false;

  write(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.#bytes += chunk.byteLength;
    this.#wake?.();
  }

  end(): void {
    this.isEnded = true;
    this.#wake?.();
  }

  bufferedBytes(): number {
    return this.#bytes;
  }

  take(): Uint8Array | undefined {
    const chunk = this.#chunks.shift();
    this.#bytes -= chunk?.byteLength ?? 0;
    return chunk;
  }

  changed(): Promise<void> {
    return new Promise((resolve) => (this.#wake = resolve));
  }
}

function decodeAll(chunks: readonly Uint8Array[]): string {
  return Buffer.concat(chunks).toString("utf8");
}
