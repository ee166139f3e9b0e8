import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, get } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import fc from "fast-check";
import type { WireResponse, WireSink } from "../../kernel/wire.ts";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { blocksOf } from "./blocks.ts";
import { ask, createHarness, dial, ok, open, until } from "./fixture.ts";
import { send } from "./send.ts";

/** A stream whose sink the test holds in its hands. */
function createTap(): { response: WireResponse; sinks: WireSink[]; stops: number } {
  const tap = { response: ok(""), sinks: [] as WireSink[], stops: 0 };
  const start = (sink: WireSink): (() => void) => {
    tap.sinks.push(sink);
    return () => void (tap.stops += 1);
  };
  tap.response = { status: 200, headers: { "content-type": "text/plain" }, body: { start } };
  return tap;
}

test("the head of a stream arrives before anything was written to it", async () => {
  const tap = createTap();
  await using harness = await createHarness(() => tap.response);
  const request = open(harness);
  request.end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  assert.equal(response.statusCode, 200);
  assert.equal(response.headers["transfer-encoding"], "chunked");
  request.destroy();
});

test("what is written to a stream arrives at once, piece by piece, until it ends", async () => {
  const tap = createTap();
  await using harness = await createHarness(() => tap.response);
  const request = open(harness);
  request.end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  for (const word of ["one", "two"]) {
    tap.sinks[0]?.write(Buffer.from(word));
    const [chunk] = await once(response, "data");
    assert.equal(String(chunk), word);
  }
  tap.sinks[0]?.end();
  response.resume();
  await once(response, "end");
  await until(() => tap.stops === 1, "the stream was told that its reader is gone");
});

test("a client that leaves releases its stream, once, and later writes go nowhere", async () => {
  const tap = createTap();
  await using harness = await createHarness(() => tap.response);
  const request = open(harness);
  request.on("error", () => {});
  request.end();
  await once(request, "response");
  request.destroy();
  await until(() => tap.stops > 0, "the stream was released");
  tap.sinks[0]?.write(Buffer.from("late"));
  tap.sinks[0]?.end();
  assert.equal(tap.sinks[0]?.bufferedBytes(), 0);
  assert.equal(tap.stops, 1);
});

test("a stream is not started for a client that left before", async () => {
  const tap = createTap();
  const waiting: (() => void)[] = [];
  let closed = false;
  await using harness = await createHarness(async ({ url }) => {
    if (url !== "/watch") return ok("x");
    await new Promise<void>((resolve) => waiting.push(resolve));
    closed = true;
    return tap.response;
  });
  const socket = await dial(harness.port);
  socket.write("GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
  await until(() => waiting.length === 1, "it arrived");
  socket.destroy();
  // Another request on another connection: after it, the first one's end was seen too.
  await ask(harness);
  await ask(harness);
  waiting[0]?.();
  await until(() => closed, "the handler is done");
  await ask(harness);
  assert.ok(tap.sinks.length === 0 || tap.stops === 1, "not started, or released at once");
});

test("what a reader does not take is counted, and taken back when it does", async () => {
  const tap = createTap();
  await using harness = await createHarness(() => tap.response);
  const socket = await dial(harness.port);
  socket.write("GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
  socket.pause();
  await until(() => tap.sinks.length === 1, "the stream started");
  const [sink] = tap.sinks;
  assert.ok(sink);
  for (let i = 0; i < 32; i += 1) sink.write(Buffer.alloc(1024 * 1024, "x"));
  assert.ok(sink.bufferedBytes() >= 16 * 1024 * 1024, String(sink.bufferedBytes()));
  socket.resume();
  await until(() => sink.bufferedBytes() === 0, "everything was taken");
  socket.destroy();
});

test("a reader that does not take the end of its stream is cut off", async () => {
  const tap = createTap();
  await using harness = await createHarness(() => tap.response);
  const socket = await dial(harness.port);
  socket.on("error", () => {});
  socket.write("GET /watch HTTP/1.1\r\nHost: a\r\n\r\n");
  socket.pause();
  await until(() => tap.sinks.length === 1, "the stream started");
  for (let i = 0; i < 32; i += 1) tap.sinks[0]?.write(Buffer.alloc(1024 * 1024, "x"));
  tap.sinks[0]?.end();
  harness.clock.advance(59_999);
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(tap.stops, 0);
  harness.clock.advance(1);
  await until(() => tap.stops === 1, "the connection was cut");
  socket.destroy();
});

const piecesOf = (count: number, bytes: number): Uint8Array[] => {
  return Array.from({ length: count }, (_, i) => Buffer.alloc(bytes, String(i % 10)));
};

test("a large answer arrives whole, with its length, and others are served in between", async () => {
  const pieces = piecesOf(10_000, 1_000);
  await using harness = await createHarness(({ url }) => {
    if (url === "/small") return ok("small");
    return { status: 200, headers: {}, body: pieces };
  });
  const request = open(harness, { headers: { "accept-encoding": "gzip" } });
  request.end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  // Nothing of the large one is read yet, so it cannot be done.
  assert.equal((await ask(harness, { path: "/small" })).body, "small");
  assert.equal(response.headers["content-length"], "10000000");
  assert.equal(response.headers["content-encoding"], undefined);
  assert.deepEqual(await buffer(response), Buffer.concat(pieces));
});

test("no more of a large answer is in memory than its reader is about to take", async () => {
  const responses: ServerResponse[] = [];
  const server = createServer((_, response) => {
    responses.push(response);
    const to = { response, clock: new VirtualClock(), acceptsGzip: false, isLast: true };
    void send(to, { status: 200, headers: {}, body: piecesOf(64, 1024 * 1024) });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const request = get({ port, agent: false });
  const [response] = (await once(request, "response")) as [IncomingMessage];
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  assert.ok((responses[0]?.writableLength ?? 0) < 1024 * 1024);
  assert.equal((await buffer(response)).length, 64 * 1024 * 1024);
  server.close();
});

test("who stops taking a large answer is cut off", async () => {
  await using harness = await createHarness(() => {
    return { status: 200, headers: {}, body: piecesOf(64, 1024 * 1024) };
  });
  const socket = await dial(harness.port);
  socket.on("error", () => {});
  socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  socket.pause();
  await until(() => harness.requests.length === 1, "it was asked");
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  harness.clock.advance(60_000);
  socket.resume();
  await once(socket, "close");
  assert.ok(socket.bytesRead < 64 * 1024 * 1024);
});

test("a large answer is compressed for who is far away and asks for it", async () => {
  const pieces = piecesOf(2_000, 1_000);
  const answer: WireResponse = { status: 200, headers: { vary: "Accept" }, body: pieces };
  const response = await receive(answer, true);
  assert.equal(response.headers["content-encoding"], "gzip");
  assert.equal(response.headers["vary"], "Accept, Accept-Encoding");
  assert.deepEqual(gunzipSync(await buffer(response)), Buffer.concat(pieces));
});

test("small, already encoded, and unasked answers are not compressed", async () => {
  const small = await receive({ status: 200, headers: {}, body: piecesOf(2, 1_000) }, true);
  assert.equal(small.headers["content-encoding"], undefined);
  assert.equal(small.headers["content-length"], "2000");
  const headers = { "content-encoding": "br" };
  const encoded = await receive({ status: 200, headers, body: piecesOf(300, 1_000) }, true);
  assert.equal(encoded.headers["content-encoding"], "br");
  const unasked = await receive({ status: 200, headers: {}, body: piecesOf(300, 1_000) }, false);
  assert.equal(unasked.headers["content-length"], "300000");
  for (const response of [small, encoded, unasked]) response.resume();
});

/** Sends one answer over a plain connection, where being far away can be pretended. */
async function receive(answer: WireResponse, acceptsGzip: boolean): Promise<IncomingMessage> {
  const clock = new VirtualClock();
  const server = createServer((_, response) => {
    void send({ response, clock, acceptsGzip, isLast: true }, answer);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const [response] = (await once(get({ port, agent: false }), "response")) as [IncomingMessage];
  server.close();
  return response;
}

test("blocks hold the same bytes as the pieces, and none is larger than allowed", () => {
  const piece = fc.uint8Array({ maxLength: 50 });
  fc.assert(
    fc.property(
      fc.array(piece, { maxLength: 40 }),
      fc.integer({ min: 1, max: 30 }),
      (pieces, max) => {
        const blocks = [...blocksOf(pieces, max)];
        assert.deepEqual(Buffer.concat(blocks), Buffer.concat(pieces));
        assert.ok(blocks.every((block) => block.length > 0 && block.length <= max));
      },
    ),
  );
});
