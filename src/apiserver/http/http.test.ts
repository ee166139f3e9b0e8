import assert from "node:assert/strict";
import { once } from "node:events";
import { Agent } from "node:https";
import { connect as connectPlain } from "node:net";
import { test } from "node:test";
import { connect } from "node:tls";
import { X509Certificate } from "node:crypto";
import { limits } from "../../kernel/limits.ts";
import {
  ask,
  authority,
  certificate,
  createHarness,
  dial,
  issueTestCertificate,
  ok,
  open,
  readAll,
  until,
} from "./fixture.ts";
import { listen } from "./index.ts";

test("a request arrives with method, URL, headers and body, and is answered", async () => {
  await using harness = await createHarness(() => ok("hello"));
  const answer = await ask(harness, {
    method: "POST",
    path: "/a%20b?c=d",
    headers: { "X-Thing": "1" },
    body: "payload",
  });
  assert.equal(answer.status, 200);
  assert.equal(answer.body, "hello");
  assert.equal(answer.headers["content-length"], "5");
  assert.equal(answer.headers["cache-control"], "no-cache, private");
  const [request] = harness.requests;
  assert.equal(request?.method, "POST");
  assert.equal(request?.url, "/a%20b?c=d");
  assert.equal(request?.headers["x-thing"], "1");
  assert.equal(Buffer.from(request?.body ?? []).toString(), "payload");
});

test("headers that are sent twice are joined, so that no one is overlooked", async () => {
  await using harness = await createHarness(() => ok(""));
  const socket = await dial(harness.port);
  socket.write(
    "GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer a\r\nAuthorization: Bearer b\r\n",
  );
  socket.write("Set-Cookie: a\r\nSet-Cookie: b\r\nConnection: close\r\n\r\n");
  await readAll(socket);
  assert.equal(harness.requests[0]?.headers["authorization"], "Bearer a, Bearer b");
  assert.equal(harness.requests[0]?.headers["set-cookie"], undefined);
});

test("HTTP/1.1 is offered and HTTP/2 is not", async () => {
  await using harness = await createHarness(() => ok(""));
  const offer = { port: harness.port, host: "127.0.0.1", ca: authority.cert };
  const both = connect({ ...offer, ALPNProtocols: ["h2", "http/1.1"] });
  await once(both, "secureConnect");
  assert.equal(both.alpnProtocol, "http/1.1");
  both.destroy();
  const onlyNew = connect({ ...offer, ALPNProtocols: ["h2"] });
  const [error] = await once(onlyNew, "error");
  assert.match(String(error), /no application protocol/i);
});

test("a connection is used again, unless the client says close", async () => {
  await using harness = await createHarness(() => ok("x"));
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const sockets = new Set<unknown>();
  agent.on("free", (socket) => sockets.add(socket));
  for (let i = 0; i < 3; i += 1) assert.equal((await ask(harness, { agent })).status, 200);
  await until(() => sockets.size > 0, "the connection is free");
  assert.equal(sockets.size, 1);
  agent.destroy();
  const closing = await ask(harness, { headers: { connection: "close" } });
  assert.equal(closing.headers.connection, "close");
});

test("pipelined requests are answered in their order", async () => {
  const waiting: (() => void)[] = [];
  await using harness = await createHarness(async ({ url }) => {
    if (url === "/1") await new Promise<void>((resolve) => waiting.push(resolve));
    return ok(`answer${url}`);
  });
  const socket = await dial(harness.port);
  socket.write(
    "GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
  );
  await until(() => harness.requests.length === 2, "both arrived");
  waiting[0]?.();
  const text = await readAll(socket);
  assert.ok(text.indexOf("answer/1") > 0);
  assert.ok(text.indexOf("answer/1") < text.indexOf("answer/2"));
});

test("a chunked body arrives whole", async () => {
  await using harness = await createHarness(() => ok(""));
  const request = open(harness, { method: "POST", headers: { authorization: "Bearer good" } });
  request.write("one ");
  request.write("two ");
  request.end("three");
  const [response] = await once(request, "response");
  response.resume();
  assert.equal(Buffer.from(harness.requests[0]?.body ?? []).toString(), "one two three");
});

test("a body of just the limit is taken", async () => {
  await using harness = await createHarness(() => ok(""));
  const body = Buffer.alloc(limits.requestBodyBytes, "x");
  const headers = { authorization: "Bearer good" };
  assert.equal((await ask(harness, { method: "POST", body, headers })).status, 200);
  assert.equal(harness.requests[0]?.body.length, limits.requestBodyBytes);
});

const tooLargeMessage = `Request entity too large: limit is ${limits.requestBodyBytes}`;

test("a body of 20 MB is refused with a sentence that its sender gets to read", async () => {
  await using harness = await createHarness(() => ok(""));
  const body = Buffer.alloc(20 * 1024 * 1024, "x");
  const headers = { authorization: "Bearer good" };
  const answer = await ask(harness, { method: "POST", body, headers });
  assert.equal(answer.status, 413);
  assert.equal(answer.headers.connection, "close");
  assert.equal(JSON.parse(answer.body).message, tooLargeMessage);
  assert.equal(JSON.parse(answer.body).reason, "RequestEntityTooLarge");
  assert.equal(harness.requests.length, 0);
});

test("a chunked body is refused as soon as it is too large", async () => {
  await using harness = await createHarness(() => ok(""));
  const request = open(harness, { method: "POST", headers: { authorization: "Bearer good" } });
  const answered = once(request, "response");
  for (let i = 0; i < 4; i += 1) request.write(Buffer.alloc(1024 * 1024, "x"));
  const [response] = await answered;
  assert.equal(response.statusCode, 413);
  request.end();
  response.resume();
  await once(response, "end");
});

test("who goes on sending after the refusal is cut off", async () => {
  await using harness = await createHarness(() => ok(""));
  const socket = await dial(harness.port);
  socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n");
  socket.write("a little, and then silence");
  const [head] = await once(socket, "data");
  assert.match(String(head), /^HTTP\/1\.1 413 /);
  harness.clock.advance(10_000);
  await once(
    socket.resume().on("error", () => {}),
    "close",
  );
});

test("a client that asks before sending is refused before it sends", async () => {
  await using harness = await createHarness(() => ok(""));
  const headers = { "content-length": String(20 * 1024 * 1024), expect: "100-continue" };
  const request = open(harness, { method: "POST", headers });
  request.on("continue", () => assert.fail("it was told to go on"));
  request.flushHeaders();
  const [response] = await once(request, "response");
  assert.equal(response.statusCode, 413);
  request.destroy();
});

test("a client that asks before sending something small is told to go on", async () => {
  await using harness = await createHarness(() => ok("done"));
  const headers = { "content-length": "4", expect: "100-continue" };
  const request = open(harness, { method: "POST", headers });
  request.flushHeaders();
  await once(request, "continue");
  request.end("body");
  const [response] = await once(request, "response");
  assert.equal(response.statusCode, 200);
  response.resume();
  assert.equal(Buffer.from(harness.requests[0]?.body ?? []).toString(), "body");
});

test("an expectation that nobody knows is refused with a Status", async () => {
  await using harness = await createHarness(() => ok("never"));
  const answer = await ask(harness, { path: "/", headers: { expect: "nonsense" } });
  assert.equal(answer.status, 417);
  assert.equal(JSON.parse(answer.body).kind, "Status");
  assert.equal(harness.requests.length, 0);
});

test("a large body of somebody unknown is not read", async () => {
  await using harness = await createHarness(() => ok(""));
  const answer = await ask(harness, { method: "POST", body: Buffer.alloc(100_000) });
  assert.equal(answer.status, 401);
  assert.equal(JSON.parse(answer.body).reason, "Unauthorized");
  assert.equal(harness.requests.length, 0);
});

test("a compressed body is refused by its encoding", async () => {
  await using harness = await createHarness(() => ok(""));
  const headers = { "content-encoding": "gzip" };
  assert.equal((await ask(harness, { method: "POST", body: "x", headers })).status, 415);
});

test("an answer without a body says no length that is not its own", async () => {
  await using harness = await createHarness(() => {
    return { status: 304, headers: { etag: '"x"' }, body: new Uint8Array(0) };
  });
  const answer = await ask(harness);
  assert.equal(answer.status, 304);
  assert.equal(answer.headers["content-length"], undefined);
  assert.equal(answer.headers.etag, '"x"');
});

test("a client that leaves before its answer disturbs nobody", async () => {
  const waiting: (() => void)[] = [];
  await using harness = await createHarness(async ({ url }) => {
    if (url === "/slow") await new Promise<void>((resolve) => waiting.push(resolve));
    return ok("x");
  });
  const request = open(harness, { path: "/slow" });
  request.on("error", () => {});
  request.end();
  await until(() => waiting.length === 1, "it arrived");
  request.destroy();
  assert.equal((await ask(harness)).status, 200);
  waiting[0]?.();
  assert.equal((await ask(harness)).status, 200);
  assert.deepEqual(harness.lines, []);
});

test("a server that breaks its word and rejects costs one connection", async () => {
  await using harness = await createHarness(({ url }) => {
    if (url === "/bad") throw new Error("secret detail");
    return ok("x");
  });
  await assert.rejects(ask(harness, { path: "/bad" }), /hang up|ECONNRESET/);
  assert.equal((await ask(harness)).status, 200);
  assert.equal(harness.lines.length, 1);
  assert.equal(JSON.stringify(harness.lines).includes("secret detail"), false);
});

const garbage: Record<string, [bytes: string, answer: RegExp]> = {
  "no HTTP at all": ["\u0000\u0001\u0002 nonsense\r\n\r\n", /^HTTP\/1\.1 400 /],
  "a method that nobody knows": ["FROB / HTTP/1.1\r\nHost: a\r\n\r\n", /^HTTP\/1\.1 400 /],
  "a header without a name": ["GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n", /^HTTP\/1\.1 400 /],
  "two lengths": [
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    /^HTTP\/1\.1 400 /,
  ],
  "a length and chunks": [
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    /^HTTP\/1\.1 400 /,
  ],
  "a length that is no number": [
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -5\r\n\r\n",
    /^HTTP\/1\.1 400 /,
  ],
  "a broken chunk": [
    "POST / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer good\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    // The request is under way, and nobody could tell whose answer it would be.
    /^$/,
  ],
  "no host": ["GET / HTTP/1.1\r\n\r\n", /^HTTP\/1\.1 400 /],
  "more headers than fit": [
    `GET / HTTP/1.1\r\nHost: a\r\nX: ${"x".repeat(limits.headerBytes)}\r\n\r\n`,
    /^HTTP\/1\.1 431 /,
  ],
};

for (const [what, [bytes, expected]] of Object.entries(garbage)) {
  test(`${what} is refused, and the next one is served`, async () => {
    await using harness = await createHarness(() => ok("x"));
    const socket = await dial(harness.port);
    socket.write(bytes, "latin1");
    const text = await readAll(socket);
    assert.match(text, expected);
    const body = text.slice(text.indexOf("\r\n\r\n") + 4);
    if (body.startsWith("{")) assert.equal(JSON.parse(body).kind, "Status");
    assert.equal(harness.requests.length, 0);
    assert.equal((await ask(harness)).status, 200);
  });
}

test("plain HTTP spoken to the TLS port is noted once, and nothing else happens", async () => {
  await using harness = await createHarness(() => ok("x"));
  for (let i = 0; i < 3; i += 1) {
    const socket = connectPlain({ port: harness.port, host: "127.0.0.1" });
    socket.on("error", () => {});
    socket.resume();
    socket.write("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    await once(socket, "close");
  }
  assert.deepEqual(
    harness.lines.map((line) => line.message),
    ["a client spoke plain HTTP to the TLS port; use https://"],
  );
  assert.equal((await ask(harness)).status, 200);
});

test("a port that is taken is an error that the caller gets", async () => {
  await using harness = await createHarness(() => ok("x"));
  const { clock, port } = harness;
  const server = { handle: async () => ok(""), knows: () => true, close: () => {} };
  const again = listen({ server, tls: certificate, host: "127.0.0.1", port, clock, log: () => {} });
  await assert.rejects(again, { code: "EADDRINUSE" });
});

test("a renewed certificate is shown to those who come after", async () => {
  await using harness = await createHarness(() => ok("x"));
  const serialOf = async (): Promise<string> => {
    const socket = await dial(harness.port);
    const { serialNumber } = socket.getPeerCertificate();
    socket.destroy();
    return serialNumber;
  };
  assert.equal(await serialOf(), new X509Certificate(certificate.cert).serialNumber);
  const renewed = await issueTestCertificate();
  harness.listener.renew(renewed);
  assert.equal(await serialOf(), new X509Certificate(renewed.cert).serialNumber);
});
