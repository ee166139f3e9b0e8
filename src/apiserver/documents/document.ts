import { createHash } from "node:crypto";
import { ApiError } from "../../kernel/status.ts";
import type { WireResponse } from "../../kernel/wire.ts";
import type { Catalogue } from "../contract.ts";

/** A document that changes only with the catalogue: made once, then served as it is. */
export interface Document {
  readonly contentType: string;
  readonly body: Uint8Array;
  /** A hash of the body: equal documents have equal tags, also across restarts. */
  readonly hash: string;
}

/** What a document's handler reads of a request. The router saw to it that the method is GET. */
export interface DocumentRequest {
  /** Decoded, without the query: "/apis/berth.dev". */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string>>;
}

/** Serves documents. Undefined: the path is none of them. */
export type DocumentHandler = (request: DocumentRequest) => WireResponse | undefined;

export function makeDocument(value: unknown, contentType = "application/json"): Document {
  return documentOf(Buffer.from(`${JSON.stringify(value)}\n`, "utf8"), contentType);
}

/** A document of bytes that are not ours to encode. */
export function documentOf(body: Uint8Array, contentType: string): Document {
  const hash = createHash("sha256").update(body).digest("hex").toUpperCase();
  return { contentType, body, hash };
}

/** Answers with the document, or with 304 where the client has this very one. */
export function serveDocument(
  document: Document,
  request: DocumentRequest,
  // Whoever may not see the API may not see its documents either, so no shared cache keeps them.
  cacheControl = "private, no-cache",
): WireResponse {
  const headers = {
    etag: `"${document.hash}"`,
    vary: "Accept",
    "cache-control": cacheControl,
  };
  if (hasDocument(request.headers["if-none-match"], document)) {
    return { status: 304, headers, body: new Uint8Array() };
  }
  const typed = { ...headers, "content-type": document.contentType };
  return { status: 200, headers: typed, body: document.body };
}

function hasDocument(ifNoneMatch: string | undefined, document: Document): boolean {
  if (ifNoneMatch === undefined) return false;
  const tags = ifNoneMatch.split(",").map((tag) => tag.trim().replace(/^W\//, ""));
  return tags.includes("*") || tags.includes(`"${document.hash}"`);
}

export function notAcceptable(types: readonly string[]): ApiError {
  const message = `only the following media types are accepted: ${types.join(", ")}`;
  return new ApiError(406, "NotAcceptable", message);
}

/** Builds something from the catalogue when first asked, and anew when the catalogue changed. */
export function perGeneration<T>(
  catalogue: Catalogue,
  build: (catalogue: Catalogue) => T,
): () => T {
  let built: { readonly generation: number; readonly value: T } | undefined;
  return () => {
    const generation = catalogue.generation();
    if (built?.generation !== generation) built = { generation, value: build(catalogue) };
    return built.value;
  };
}
