/** What the transport bounds beyond the limits that it shares with the rest, with the reasons. */
export const bounds = {
  /** Twice the watches that are allowed, and file descriptors are left for the store. */
  connectionsMax: 4_096,
  /** Requests being served, watches included. Pipelining could stack them up on few connections. */
  requestsMax: 6_000,
  /** Up to here a body is read before its sender is known: all of ours that are small. */
  strangerBodyBytes: 16 * 1024,
  /** Bodies being read, all together. Only known users come this far. */
  bodiesBytes: 256 * 1024 * 1024,
  handshakeMs: 10_000,
  /** A client sends its headers in one piece; who takes longer holds a connection for nothing. */
  headersMs: 10_000,
  /** The largest body over a slow line. */
  requestMs: 60_000,
  /** How often connections are looked at for the two above: it adds to them at most. */
  checkMs: 5_000,
  /** Longer than Go's clients keep an idle connection (90 s): they close first, without a race. */
  keepAliveMs: 120_000,
  headersCount: 100,
  /** Dead peers are found by TCP, also where no data flows. */
  tcpKeepAliveMs: 30_000,
  /** How long a client may leave an answer untaken before its connection is cut. */
  stallMs: 60_000,
  /** Answers up to this size are sent without looking whether they are taken. */
  guardBytes: 64 * 1024,
  /** After refusing a body the rest of it is thrown away for so long, and so much of it. */
  lingerMs: 10_000,
  lingerBytes: 64 * 1024 * 1024,
  /** Large answers go out in blocks of this size, and others are served in between. */
  blockBytes: 256 * 1024,
  /** kube-apiserver's own threshold: below it compressing costs more than it saves. */
  compressBytesMin: 128 * 1024,
} as const;
