/**
 * One request to the API, freed from its transport: the HTTPS server makes it from a socket, the
 * in-process client from nothing, and the server cannot tell which. Path and query are decoded by
 * the server, not by the transport.
 */
export interface WireRequest {
  readonly method: string;
  /** Path and query as sent: "/apis/berth.dev/v1alpha1/virtualmachines?watch=true". */
  readonly url: string;
  /** Header names are lower case. Repeated headers are joined by ", ". */
  readonly headers: Readonly<Record<string, string>>;
  /** The whole body; empty where there is none. The transport enforces the size limit. */
  readonly body: Uint8Array;
}

export interface WireResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Complete bytes (several pieces are sent one after the other), or a stream that goes on. */
  readonly body: Uint8Array | readonly Uint8Array[] | WireStream;
}

/** A body without a known end, such as a watch. It pushes into the sink until either side ends. */
export interface WireStream {
  /**
   * Called once, after the headers went out. Returns what to call when the reader is gone; after
   * that nothing may be written.
   */
  start(sink: WireSink): () => void;
}

export interface WireSink {
  /** Never blocks: what the reader has not taken is buffered, and counted in `bufferedBytes`. */
  write(chunk: Uint8Array): void;
  end(): void;
  /** Bytes written and not yet taken. A producer ends the stream when it grows beyond its limit. */
  bufferedBytes(): number;
}

export function isStream(body: WireResponse["body"]): body is WireStream {
  return !(body instanceof Uint8Array) && !Array.isArray(body);
}
