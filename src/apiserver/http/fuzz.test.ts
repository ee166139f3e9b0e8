import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { ask, createHarness, dial, ok } from "./fixture.ts";
import { createReceiver } from "./receive.ts";

const lines = [
  "GET / HTTP/1.1",
  "POST / HTTP/1.1",
  "PUT /x HTTP/1.0",
  "GET / HTTP/9.9",
  "PRI * HTTP/2.0",
  "Host: a",
  "Host:",
  "Content-Length: 5",
  "Content-Length: 99999999",
  "Content-Length: +1",
  "Transfer-Encoding: chunked",
  "Transfer-Encoding: gzip, chunked",
  "Expect: 100-continue",
  "Connection: upgrade",
  "Upgrade: websocket",
  "Authorization: Bearer good",
  "X: \u0000",
  "",
  "",
  "5",
  "hello",
  "0",
  "ffffffffffffffff",
  "\u0000\u00ff",
  "a".repeat(2_000),
];

test("hundreds of broken conversations leave a server that still answers", async () => {
  await using harness = await createHarness(() => ok("fine"));
  const line = fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...lines) },
    { weight: 1, arbitrary: fc.string() },
  );
  const conversations = fc.sample(fc.array(line, { minLength: 1, maxLength: 8 }), {
    numRuns: 300,
    seed: 42,
  });
  for (const conversation of conversations) {
    const socket = await dial(harness.port);
    socket.on("error", () => {});
    socket.resume();
    await new Promise<void>((resolve) => {
      socket.write(`${conversation.join("\r\n")}\r\n`, "latin1", () => resolve());
    });
    socket.destroy();
  }
  const answer = await ask(harness);
  assert.equal(answer.body, "fine");
  assert.deepEqual(harness.lines, []);
});

test("beyond the number of requests that fit, the next is told to come again", () => {
  const answers: unknown[] = [];
  const receive = createReceiver(
    {
      server: { handle: async () => ok("x"), knows: () => true, close: () => {} },
      tls: { key: "", cert: "" },
      host: "",
      port: 0,
      clock: new VirtualClock(),
      log: () => {},
    },
    {
      isClosing: false,
      activeCount: () => 1_000_000,
      isAnswering: () => false,
      track: () => {},
      close: async () => {},
    },
  );
  receive(...fakeExchange(answers));
  assert.deepEqual(answers, [429]);
});

/** As much of a request and its response as a refusal touches. */
function fakeExchange(answers: unknown[]): Parameters<ReturnType<typeof createReceiver>> {
  const request = { headers: {}, on: () => request, resume: () => request };
  const response = {
    writeHead: (status: number) => void answers.push(status),
    write: () => true,
    on: () => response,
  };
  return [request, response] as unknown as Parameters<ReturnType<typeof createReceiver>>;
}
