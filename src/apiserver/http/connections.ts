import type { ServerResponse } from "node:http";
import type { Server } from "node:https";
import type { Socket } from "node:net";
import { Server as NetServer } from "node:net";
import type { Clock } from "../../kernel/clock.ts";
import type { Log } from "../log.ts";
import { createLogThrottle } from "../log.ts";

/** The connections of a server and the answers under way on them. */
export interface Connections {
  readonly isClosing: boolean;
  /** Answers under way, streams included. */
  activeCount(): number;
  isAnswering(socket: unknown): boolean;
  /** Counts an answer as under way until all of it was taken, or its client is gone. */
  track(response: ServerResponse): void;
  close(graceMs: number): Promise<void>;
}

export function createConnections(
  https: Server,
  options: { server: { close(): void }; clock: Clock; log: Log },
): Connections {
  const open = new OpenConnections();
  const sockets = new Set<Socket>();
  let closing: Promise<void> | undefined;
  https.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  https.on("secureConnection", (socket) => open.add(socket));
  makeRoom(https, open, options);
  return {
    get isClosing() {
      return closing !== undefined;
    },
    activeCount: () => open.active,
    isAnswering: (socket) => open.isAnswering(socket),
    track: (response) => {
      // A write that the connection did not take is the end of the connection, and nothing else.
      response.on("error", () => response.destroy());
      const { socket } = response.req;
      open.begin(socket);
      response.on("close", () => {
        open.end(socket);
        if (closing !== undefined && !open.isAnswering(socket)) socket.destroySoon();
      });
    },
    close: (graceMs) => {
      closing ??= drain(https, { ...options, open, sockets, graceMs });
      return closing;
    },
  };
}

/** What node's own bookkeeping does not say: whether the last byte of an answer has left. */
class OpenConnections {
  /** Answers under way by connection. */
  readonly #answers = new Map<unknown, { readonly socket: Socket; count: number }>();
  #active = 0;

  get active(): number {
    return this.#active;
  }

  isAnswering(socket: unknown): boolean {
    return (this.#answers.get(socket)?.count ?? 0) > 0;
  }

  add(socket: Socket): void {
    this.#answers.set(socket, { socket, count: 0 });
    socket.once("close", () => this.#answers.delete(socket));
  }

  begin(socket: Socket): void {
    this.#active += 1;
    const entry = this.#answers.get(socket);
    if (entry !== undefined) entry.count += 1;
  }

  end(socket: Socket): void {
    this.#active -= 1;
    const entry = this.#answers.get(socket);
    if (entry !== undefined) entry.count -= 1;
  }

  /**
   * node's `closeIdleConnections` also takes connections on which an answer has ended but is still
   * being sent, and cuts it short (24.21, lib/_http_server.js). This one does not.
   */
  closeIdle(): void {
    for (const { socket, count } of this.#answers.values()) if (count === 0) socket.destroySoon();
  }
}

interface DrainOptions {
  readonly server: { close(): void };
  readonly clock: Clock;
  readonly open: OpenConnections;
  readonly sockets: ReadonlySet<Socket>;
  readonly graceMs: number;
}

async function drain(https: Server, options: DrainOptions): Promise<void> {
  // Not the close of node:https, which begins with its own `closeIdleConnections`: see above.
  const closed = new Promise<void>((resolve) => {
    NetServer.prototype.close.call(https, () => resolve());
  });
  options.server.close();
  options.open.closeIdle();
  const cancel = options.clock.after(options.graceMs, () => {
    for (const socket of options.sockets) socket.destroy();
  });
  await closed;
  cancel();
  // Nothing is left to cut now. This ends what node:https has running beside the connections.
  https.close();
}

/** Idle connections must not keep others out: their clients open them anew without harm. */
function makeRoom(https: Server, open: OpenConnections, options: { clock: Clock; log: Log }): void {
  const mayLog = createLogThrottle(options.clock);
  https.on("drop", () => {
    open.closeIdle();
    if (mayLog("drop")) options.log("warn", "there are too many connections, new ones are refused");
  });
}
