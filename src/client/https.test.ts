import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { setImmediate } from "node:timers/promises";
import { VirtualClock } from "../kernel/virtual-clock.ts";
import { createClient, type Client } from "./client.ts";
import { isOutcomeUnknown, NetworkError } from "./errors.ts";
import { createHttpsTransport } from "./https.ts";
import { widgetKind, type Widget } from "./testing.ts";

/** Sockets on loopback, without TLS: what matters here is who knows what when one breaks. */

const widget: Widget = {
  apiVersion: "berth.dev/v1",
  kind: "Widget",
  metadata: { name: "a", namespace: "default" },
};
const at = { name: "a", namespace: "default" };

interface Wire {
  server: Server;
  client: Client;
  requests: IncomingMessage[];
  port: number;
}

async function serving(
  context: TestContext,
  answer: RequestListener,
  { path = "", ...more }: { path?: string; currentToken?: () => string } = {},
): Promise<Wire> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    answer(request, response);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}${path}`;
  const transport = createHttpsTransport({ server: url, token: "secret", ...more });
  context.after(async () => {
    transport.close();
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  });
  const client = createClient({ transport: transport.send, clock: new VirtualClock() });
  return { server, client, requests, port };
}

const answerWidget: RequestListener = (request, response) => {
  request.resume().on("end", () => response.end(JSON.stringify(widget)));
};

test("sends the token, keeps the path of the server, and uses a connection again", async (context) => {
  const { client, requests } = await serving(context, answerWidget, { path: "/k8s/clusters/one/" });
  assert.deepEqual(await client.of(widgetKind).get(at), widget);
  await client.of(widgetKind).create(widget);
  assert.deepEqual(
    requests.map(({ method, url }) => `${method} ${url}`),
    [
      "GET /k8s/clusters/one/apis/berth.dev/v1/namespaces/default/widgets/a",
      "POST /k8s/clusters/one/apis/berth.dev/v1/namespaces/default/widgets",
    ],
  );
  assert.equal(requests[0]?.headers.authorization, "Bearer secret");
  assert.equal(requests[1]?.headers["content-length"], String(JSON.stringify(widget).length));
  assert.equal(requests[0]?.socket, requests[1]?.socket);
});

test("asks for a token that changes at each request", async (context) => {
  let count = 0;
  const currentToken = (): string => `token-${(count += 1)}`;
  const { client, requests } = await serving(context, answerWidget, { currentToken });
  await client.of(widgetKind).get(at);
  await client.of(widgetKind).get(at);
  assert.deepEqual(
    requests.map(({ headers }) => headers.authorization),
    ["Bearer token-1", "Bearer token-2"],
  );
});

test("knows that nothing was sent when nobody listens", async (context) => {
  const { client, server } = await serving(context, answerWidget);
  server.close();
  await once(server, "close");
  const write = client.of(widgetKind).create(widget);
  await assert.rejects(write, (error) => {
    return error instanceof NetworkError && error.code === "Unreachable";
  });
  server.listen(0);
});

test("does not know what became of a write whose connection broke", async (context) => {
  const { client, requests } = await serving(context, (request) => {
    request.resume().on("end", () => request.socket.destroy());
  });
  await assert.rejects(client.of(widgetKind).create(widget), isOutcomeUnknown);
  assert.equal(requests.length, 1, "it is not sent again");
});

test("does not know what became of a write whose answer was cut off", async (context) => {
  const { client } = await serving(context, (request, response) => {
    request.resume().on("end", () => {
      response.writeHead(201, { "content-length": 1_000 });
      response.write('{"apiVersion":');
      void setImmediate().then(() => response.destroy());
    });
  });
  await assert.rejects(client.of(widgetKind).create(widget), isOutcomeUnknown);
});

test("a watch ends when the connection breaks, and closes it when the loop is left", async (context) => {
  const line = `${JSON.stringify({ type: "ADDED", object: widget })}\n`;
  const { client, requests } = await serving(context, (_request, response) => {
    response.writeHead(200);
    response.write(line);
  });
  const watch = client.of(widgetKind).watch();
  assert.equal((await watch.next()).value?.type, "ADDED");
  requests[0]?.socket.destroy();
  assert.equal((await watch.next()).done, true);
  for await (const event of client.of(widgetKind).watch()) {
    assert.equal(event.type, "ADDED");
    break;
  }
  const socket = requests[1]?.socket;
  assert.ok(socket);
  if (!socket.destroyed) await once(socket, "close");
});

test("a caller who gives up closes the connection", async (context) => {
  const { client, requests, server } = await serving(context, () => undefined);
  const controller = new AbortController();
  const read = client.of(widgetKind).get(at, { signal: controller.signal });
  const arrived = once(server, "request");
  await arrived;
  const closed = once(requests[0]?.socket ?? assert.fail("it arrived"), "close");
  controller.abort(new Error("enough"));
  await assert.rejects(read, /enough/);
  await closed;
});
