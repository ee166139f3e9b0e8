import type { ServerResponse } from "node:http";
import type { Server } from "node:https";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import type { Clock } from "../../kernel/clock.ts";
import type { Log } from "../log.ts";
import { createLogThrottle } from "../log.ts";
import { refuseBytes } from "./refuse.ts";

/** The connections of a server and the answers under way on them. */
export interface Connections {
  readonly isClosing: boolean;
  /** Answers under way, streams included. */
  activeCount(): number;
  /** Counts an answer as under way until it is done or its client is gone. */
  track(response: ServerResponse): void;
  close(graceMs: number): Promise<void>;
}

export function createConnections(
  https: Server,
  options: { server: { close(): void }; clock: Clock; log: Log },
): Connections {
  const sockets = new Set<Socket>();
  const active = new Set<ServerResponse>();
  let closing: Promise<void> | undefined;
  https.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  refuseStrangers(https, active, options);
  makeRoom(https, options);
  return {
    get isClosing() {
      return closing !== undefined;
    },
    activeCount: () => active.size,
    track: (response) => {
      active.add(response);
      // A write that the connection did not take is the end of the connection, and of nothing else.
      response.on("error", () => response.destroy());
      response.on("close", () => {
        active.delete(response);
        // The connection of a stream that just ended would else stay open until it times out.
        if (closing !== undefined) https.closeIdleConnections();
      });
    },
    close: (graceMs) => {
      closing ??= drain(https, sockets, { ...options, graceMs });
      return closing;
    },
  };
}

async function drain(
  https: Server,
  sockets: ReadonlySet<Socket>,
  options: { server: { close(): void }; clock: Clock; graceMs: number },
): Promise<void> {
  const closed = new Promise<void>((resolve) => https.close(() => resolve()));
  options.server.close();
  https.closeIdleConnections();
  const cancel = options.clock.after(options.graceMs, () => {
    for (const socket of sockets) socket.destroy();
  });
  await closed;
  cancel();
}

/** Idle connections must not keep others out: their clients open them anew without harm. */
function makeRoom(https: Server, options: { clock: Clock; log: Log }): void {
  const mayLog = createLogThrottle(options.clock);
  https.on("drop", () => {
    https.closeIdleConnections();
    if (mayLog("drop")) options.log("warn", "there are too many connections, new ones are refused");
  });
}

/** Answers what is no HTTP, and takes note of what is no TLS. Neither may bring anything down. */
function refuseStrangers(
  https: Server,
  active: ReadonlySet<ServerResponse>,
  options: { clock: Clock; log: Log },
): void {
  const mayLog = createLogThrottle(options.clock);
  https.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    const isAnswering = [...active].some((response) => response.socket === socket);
    // In the middle of another answer a refusal would only garble it.
    if (error.code === "ECONNRESET" || !socket.writable || isAnswering) socket.destroy();
    else refuseBytes(socket, error.code, options.clock);
  });
  https.on("tlsClientError", (error: NodeJS.ErrnoException, socket: TLSSocket) => {
    const peer = socket.remoteAddress ?? "unknown";
    if (error.code === "ERR_SSL_HTTP_REQUEST" && mayLog(peer)) {
      options.log("warn", "a client spoke plain HTTP to the TLS port; use https://", { peer });
    }
    socket.destroy();
  });
}
