import type { IncomingMessage } from "node:http";
import { limits } from "../../kernel/limits.ts";

const empty = new Uint8Array(0);

/** What a request's headers say about its body, before a byte of it is read. */
export type Announced =
  | { readonly body: "none" }
  | { readonly body: "sized"; readonly bytes: number }
  /** Chunked: its size is known only at its end. */
  | { readonly body: "unsized" };

export function announcedBody(request: IncomingMessage): Announced {
  const { headers } = request;
  if (headers["transfer-encoding"] !== undefined) return { body: "unsized" };
  // The parser of node:http has refused what is not a number.
  const bytes = Number(headers["content-length"] ?? 0);
  return bytes === 0 ? { body: "none" } : { body: "sized", bytes };
}

export type BodyResult =
  | { readonly ok: true; readonly body: Uint8Array }
  | { readonly ok: false; readonly why: "tooLarge" | "overloaded" };

/** Bytes of bodies under way on all connections, shared by all readers. */
export interface BodyBudget {
  usedBytes: number;
  readonly maxBytes: number;
}

/**
 * Reads a whole body and calls back once. It stops reading where the body or all bodies together
 * grow too large, and never calls back for a client that went away: nobody waits for an answer.
 */
export function readBody(
  request: IncomingMessage,
  budget: BodyBudget,
  done: (result: BodyResult) => void,
): void {
  const chunks: Buffer[] = [];
  let bytes = 0;
  const settle = (): void => {
    budget.usedBytes -= bytes;
    request.off("data", onData).off("end", onEnd).off("close", settle);
  };
  const onData = (chunk: Buffer): void => {
    bytes += chunk.length;
    budget.usedBytes += chunk.length;
    chunks.push(chunk);
    const isTooLarge = bytes > limits.requestBodyBytes;
    if (!isTooLarge && budget.usedBytes <= budget.maxBytes) return;
    settle();
    done({ ok: false, why: isTooLarge ? "tooLarge" : "overloaded" });
  };
  const onEnd = (): void => {
    settle();
    done({ ok: true, body: joined(chunks, bytes) });
  };
  request.on("data", onData).on("end", onEnd).on("close", settle);
}

function joined(chunks: readonly Buffer[], bytes: number): Uint8Array {
  const [first] = chunks;
  if (first === undefined) return empty;
  return chunks.length === 1 ? first : Buffer.concat(chunks, bytes);
}
