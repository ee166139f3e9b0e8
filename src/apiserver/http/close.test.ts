import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent } from "node:https";
import { test } from "node:test";
import type { WireSink } from "../../kernel/wire.ts";
import { ask, createHarness, dial, ok, open, readAll, until } from "./fixture.ts";

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

test("closing twice is closing once", async () => {
  const harness = await createHarness(() => ok("x"));
  await Promise.all([harness.listener.close(1_000), harness.listener.close(5)]);
  await harness.listener.close(0);
});
