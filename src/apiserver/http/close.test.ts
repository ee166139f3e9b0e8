import assert from "node:assert/strict";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { Agent, createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import type { WireSink } from "../../kernel/wire.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { createLogBook } from "../fixture.ts";
import { createConnections } from "./connections.ts";
import { ask, certificate, createHarness, dial, ok, open, readAll, until } from "./fixture.ts";

test("closing ends idle connections and refuses new ones", async () => {
  const harness = await createHarness(() => ok("x"));
  const agent = new Agent({ keepAlive: true });
  await ask(harness, { agent });
  await harness.listener.close(1_000);
  await assert.rejects(ask(harness), /ECONNREFUSED/);
  agent.destroy();
});

test("closing ends the streams, and their connections with them", async () => {
  const sinks: WireSink[] = [];
  const start = (sink: WireSink): (() => void) => {
    sinks.push(sink);
    return () => {};
  };
  const harness = await createHarness(
    () => ({ status: 200, headers: {}, body: { start } }),
    () => sinks.forEach((sink) => sink.end()),
  );
  const agent = new Agent({ keepAlive: true });
  const request = open(harness, { agent });
  request.end();
  const [response] = await once(request, "response");
  response.resume();
  const ended = once(response, "end");
  await harness.listener.close(1_000);
  await ended;
  agent.destroy();
});

test("an answer under way is given, says that it is the last, and then all is closed", async () => {
  const waiting: (() => void)[] = [];
  const harness = await createHarness(async () => {
    await new Promise<void>((resolve) => waiting.push(resolve));
    return ok("in time");
  });
  const answered = ask(harness, { agent: new Agent({ keepAlive: true }) });
  await until(() => waiting.length === 1, "it arrived");
  let isClosed = false;
  const closed = harness.listener.close(1_000).then(() => (isClosed = true));
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(isClosed, false);
  waiting[0]?.();
  const answer = await answered;
  assert.equal(answer.body, "in time");
  assert.equal(answer.headers.connection, "close");
  await closed;
});

test("what is not done at the deadline is cut, handshakes included", async () => {
  const harness = await createHarness(() => new Promise(() => {}));
  const waiting = await dial(harness.port);
  waiting.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const silent = await dial(harness.port);
  await until(() => harness.requests.length === 1, "one arrived");
  const ends = Promise.all([readAll(waiting), readAll(silent)]);
  const closed = harness.listener.close(1_000);
  harness.clock.advance(1_000);
  await closed;
  assert.deepEqual(await ends, ["", ""]);
});

test("an answer that has ended but is still being taken is not cut short", async () => {
  const bytes = 32 * 1024 * 1024;
  const sinks: WireSink[] = [];
  const start = (sink: WireSink): (() => void) => {
    sinks.push(sink);
    return () => {};
  };
  const harness = await createHarness(
    () => ({ status: 200, headers: {}, body: { start } }),
    () => sinks.forEach((sink) => sink.end()),
  );
  const request = open(harness, { agent: new Agent({ keepAlive: true }) });
  request.end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  sinks[0]?.write(Buffer.alloc(bytes, "x"));
  const closed = harness.listener.close(1_000);
  assert.equal((await buffer(response)).length, bytes);
  await closed;
});

test("when there are too many connections, the idle ones make room", async () => {
  const clock = new VirtualClock();
  const { log, lines } = createLogBook();
  const https = createServer(certificate, (_, response) => {
    connections.track(response);
    response.end("x");
  });
  https.maxConnections = 1;
  const connections = createConnections(https, { server: { close: () => {} }, clock, log });
  https.listen(0, "127.0.0.1");
  await once(https, "listening");
  const { port } = https.address() as AddressInfo;
  const [idle] = await Promise.all([dial(port), once(https, "secureConnection")]);
  idle.resume();
  const idleClosed = once(idle, "close");
  await assert.rejects(dial(port));
  await idleClosed;
  (await dial(port)).destroy();
  assert.equal(lines.length, 1);
  const closed = connections.close(0);
  clock.advance(0);
  await closed;
});

test("closing twice is closing once", async () => {
  const harness = await createHarness(() => ok("x"));
  await Promise.all([harness.listener.close(1_000), harness.listener.close(5)]);
  await harness.listener.close(0);
});
