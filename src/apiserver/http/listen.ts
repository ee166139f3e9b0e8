import type { IncomingMessage, ServerResponse } from "node:http";
import type { ServerOptions } from "node:https";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { limits } from "../../kernel/limits.ts";
import { ApiError } from "../../kernel/status.ts";
import { bounds } from "./bounds.ts";
import { createConnections } from "./connections.ts";
import type { ListenOptions, TlsFiles } from "./options.ts";
import { createReceiver } from "./receive.ts";
import { refuseBody } from "./refuse.ts";
import { refuseStrangers } from "./strangers.ts";

export interface Listener {
  readonly host: string;
  readonly port: number;
  /** Serves new connections with another certificate; those that stand keep theirs. */
  renew(tls: TlsFiles): void;
  /**
   * Stops accepting, ends streams, and waits for the answers under way; what is not done
   * after the grace is cut. Resolves when every connection is gone. May be called again.
   */
  close(graceMs: number): Promise<void>;
}

/** Serves HTTPS. Rejects with node's error where the address cannot be had. */
export async function listen(options: ListenOptions): Promise<Listener> {
  const { host, port, log } = options;
  const https = createServer(serverOptions(options.tls));
  https.maxConnections = bounds.connectionsMax;
  https.maxHeadersCount = bounds.headersCount;
  const connections = createConnections(https, options);
  refuseStrangers(https, connections, options);
  const receive = createReceiver(options, connections);
  https.on("request", (request: IncomingMessage, response: ServerResponse) => {
    receive(request, response);
  });
  https.on("checkContinue", receive);
  https.on("checkExpectation", (request: IncomingMessage, response: ServerResponse) => {
    refuseBody(request, response, { error: unknownExpectation, clock: options.clock });
  });
  await new Promise<void>((resolve, reject) => {
    https.once("error", reject);
    https.listen({ host, port }, () => {
      https.off("error", reject);
      resolve();
    });
  });
  // Accepting can fail later, for want of file descriptors. The others are still served.
  https.on("error", (error) => log("error", "the listener failed", { error: error.message }));
  const address = https.address();
  return {
    host,
    port: isAddressInfo(address) ? address.port : port,
    renew: (tls) => https.setSecureContext({ ...tls, minVersion }),
    close: (graceMs) => connections.close(graceMs),
  };
}

const minVersion = "TLSv1.2";

const unknownExpectation = new ApiError(
  417,
  "ExpectationFailed",
  'the server knows no other expectation than "100-continue"',
);

function serverOptions(tls: TlsFiles): ServerOptions {
  return {
    ...tls,
    minVersion,
    // HTTP/2 is not offered: kubectl and client-go are content with 1.1.
    ALPNProtocols: ["http/1.1"],
    handshakeTimeout: bounds.handshakeMs,
    maxHeaderSize: limits.headerBytes,
    headersTimeout: bounds.headersMs,
    requestTimeout: bounds.requestMs,
    keepAliveTimeout: bounds.keepAliveMs,
    connectionsCheckingInterval: bounds.checkMs,
    joinDuplicateHeaders: true,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: bounds.tcpKeepAliveMs,
  };
}

function isAddressInfo(address: string | AddressInfo | null): address is AddressInfo {
  return typeof address === "object" && address !== null;
}
