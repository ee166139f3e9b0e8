import type { Server } from "node:https";
import type { Duplex } from "node:stream";
import type { TLSSocket } from "node:tls";
import type { Clock } from "../../kernel/clock.ts";
import type { Log } from "../log.ts";
import { createLogThrottle } from "../log.ts";
import type { Connections } from "./connections.ts";
import { refuseBytes } from "./refuse.ts";

/** Answers what is no HTTP, and takes note of what is no TLS. Neither may bring anything down. */
export function refuseStrangers(
  https: Server,
  connections: Connections,
  options: { clock: Clock; log: Log },
): void {
  const { clock, log } = options;
  const mayLog = createLogThrottle(clock);
  https.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    // In the middle of an answer a refusal would only garble it.
    const isLost = error.code === "ECONNRESET" || !socket.writable;
    if (isLost || connections.isAnswering(socket)) socket.destroy();
    else refuseBytes(socket, error.code, clock);
  });
  https.on("tlsClientError", (error: NodeJS.ErrnoException, socket: TLSSocket) => {
    const peer = socket.remoteAddress ?? "unknown";
    if (error.code === "ERR_SSL_HTTP_REQUEST" && mayLog(peer)) {
      log("warn", "a client spoke plain HTTP to the TLS port; use https://", { peer });
    }
    socket.destroy();
  });
}
