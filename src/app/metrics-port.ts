import { createServer, type Server } from "node:http";
import { metricsContentType, type Metrics } from "../runtime/index.ts";
import { errorCode } from "./files.ts";

/** Somebody who asks and never reads must not hold a connection for ever. */
const requestMs = 10_000;

/**
 * Serves the metrics of a process that has no API of its own, and whether it lives, in plain HTTP
 * and to whoever can reach the port: on loopback, unless told otherwise.
 */
export async function serveMetrics(
  metrics: Metrics,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<{ readonly url: string; close(): Promise<void> }> {
  const server = createServer({ requestTimeout: requestMs }, (request, response) => {
    const isRead = request.method === "GET";
    if (isRead && request.url === "/metrics") {
      metrics.text().then(
        (text) => response.writeHead(200, { "content-type": metricsContentType }).end(text),
        () => response.writeHead(500).end(),
      );
    } else if (isRead && request.url === "/livez") response.writeHead(200).end("ok");
    else response.writeHead(404).end();
  });
  await listening(server, host, port);
  const address = server.address();
  const taken = typeof address === "object" && address !== null ? address.port : port;
  const shown = host.includes(":") ? `[${host}]` : host;
  return {
    url: `http://${shown}:${taken}/metrics`,
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => void server.close(() => resolve()));
    },
  };
}

function listening(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", (error) => {
      const why = errorCode(error) ?? error.message;
      reject(new Error(`the metrics cannot be served on ${host} port ${port}: ${why}`));
    });
    server.listen({ host, port }, resolve);
  });
}
