import type { Clock } from "../../kernel/clock.ts";
import type { WireRequest, WireResponse } from "../../kernel/wire.ts";
import type { Log } from "../log.ts";

/** What is served. The API server is one; tests pass their own. */
export interface Served {
  /** Answers a request. It does not reject: every failure is an answer. */
  handle(request: WireRequest, peer: Peer): Promise<WireResponse>;
  /** Whether these headers carry valid credentials: asked before a large body is read. */
  knows(headers: WireRequest["headers"]): boolean;
  /** Ends the open streams, so that connections become idle. */
  close(): void;
}

/** The other end of a connection, as far as the server cares: for logs. */
export interface Peer {
  readonly remoteAddress?: string | undefined;
}

export interface TlsFiles {
  /** PEM. */
  readonly key: string;
  readonly cert: string;
}

export interface ListenOptions {
  readonly server: Served;
  readonly tls: TlsFiles;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly clock: Clock;
  readonly log: Log;
}
