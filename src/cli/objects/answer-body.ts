import { isStream, type WireResponse, type WireSink, type WireStream } from "../../kernel/wire.ts";

/** A list is far smaller; a server that sends more is not one for people. */
const bodyBytesMax = 256 * 1024 * 1024;

type Body = WireResponse["body"];

/** The whole body as text. */
export async function readText(body: Body, signal: AbortSignal): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunksOf(body, signal)) {
    bytes += chunk.byteLength;
    if (bytes > bodyBytesMax) throw new Error(`the answer has more than ${bodyBytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** The lines of a body, as they come. What follows the last line break is torn, and left out. */
export async function* readLines(
  body: Body,
  signal: AbortSignal,
): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of chunksOf(body, signal)) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > bodyBytesMax) throw new Error("a line of the answer is too long");
    for (const line of lines) if (line.trim() !== "") yield line;
  }
}

async function* chunksOf(
  body: Body,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  if (isStream(body)) yield* streamed(body, signal);
  else yield* body instanceof Uint8Array ? [body] : body;
}

/** Leaving the loop, or aborting the signal, tells the stream that nobody reads it any more. */
async function* streamed(
  stream: WireStream,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const chunks: Uint8Array[] = [];
  let isEnded = false;
  let wake = (): void => undefined;
  const sink: WireSink = {
    write: (chunk) => {
      chunks.push(chunk);
      wake();
    },
    end: () => {
      isEnded = true;
      wake();
    },
    bufferedBytes: () => chunks.reduce((bytes, chunk) => bytes + chunk.byteLength, 0),
  };
  const leave = stream.start(sink);
  const onAbort = (): void => wake();
  signal.addEventListener("abort", onAbort);
  try {
    for (;;) {
      signal.throwIfAborted();
      const chunk = chunks.shift();
      if (chunk !== undefined) yield chunk;
      else if (isEnded) return;
      else await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    signal.removeEventListener("abort", onAbort);
    leave();
  }
}
