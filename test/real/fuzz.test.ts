import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { connect as tlsConnect } from "node:tls";
import test from "node:test";
import { type Berth, startBerth, temporaryFolder } from "./support/berth.ts";
import { type Ask, bodyOf, connect, type Http, type Reply } from "./support/http.ts";
import { malformedAsk } from "./support/malformed.ts";
import { type Seeded, seeded } from "./support/seeded.ts";
import "./support/cleanup.ts";

const total = process.env["BERTH_REQUIRE_REAL"] === "1" ? 100_000 : 20_000;
const seed = Number(process.env["BERTH_SEED"] ?? 1);
const parallel = 32;
const answerWithinMs = 20_000;

test(`${total} malformed requests neither crash, hang nor fatten the server`, async (t) => {
  const folder = temporaryFolder("fuzz");
  const berth = await startBerth({ data: folder.path });
  t.after(async () => {
    await berth.stop();
    folder.remove();
  });
  const http = connect(berth, parallel);
  t.after(() => http.close());
  const random = seeded(seed);
  // The first tenth warms caches and heap; growth counts from there.
  await storm({ http, random, count: total / 10 });
  const before = residentMegabytes(berth);
  const codes = await storm({ http, random, count: total - total / 10 });
  await rawStorm(berth, random);
  const after = residentMegabytes(berth);
  t.diagnostic(`seed ${seed}; answers ${JSON.stringify(codes)}; RSS ${before} → ${after} MB`);
  assert.ok(after < before + 100, `the server grew from ${before} to ${after} MB`);
  assert.equal((await http.ask({ path: "/healthz", token: null })).text, "ok");
  assert.equal((await http.ask({ path: "/api/v1/namespaces/default" })).status, 200);
  assert.doesNotMatch(berth.output(), /assertion failed|TypeError|RangeError|uncaught/i);
});

async function storm(options: {
  readonly http: Http;
  readonly random: Seeded;
  readonly count: number;
}): Promise<Record<string, number>> {
  const codes: Record<string, number> = {};
  let left = options.count;
  const worker = async (): Promise<void> => {
    while (left-- > 0) {
      const ask = malformedAsk(options.random);
      const reply = await within(options.http.ask(ask), ask);
      const code = reply === undefined ? "refused" : String(reply.status);
      codes[code] = (codes[code] ?? 0) + 1;
      if (reply !== undefined) checkReply(ask, reply);
    }
  };
  await Promise.all(Array.from({ length: parallel }, worker));
  return codes;
}

function checkReply(ask: Ask, reply: Reply): void {
  const shown = JSON.stringify({ ...ask, raw: String(ask.raw ?? "").slice(0, 300) });
  assert.ok(reply.status !== 500, `a server error for ${shown}: ${reply.text}`);
  if (reply.status < 400) return;
  assert.match(reply.text, /^\{/, `${reply.status} without a Status for ${shown}`);
  const status = bodyOf(reply);
  assert.equal(status.kind, "Status", `no Status for ${shown}: ${reply.text}`);
  assert.equal(status.code, reply.status, shown);
  assert.ok(status.message.length > 0, `no message for ${shown}`);
  assert.doesNotMatch(status.message, /\n\s+at |\.ts:\d+/, `a stack trace for ${shown}`);
}

/** A request that Node's own client refuses to send is no request; one without answer is a hang. */
async function within(asked: Promise<Reply>, ask: Ask): Promise<Reply | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), answerWithinMs);
  });
  try {
    const reply = await Promise.race([asked, late]);
    assert.ok(reply !== "late", `no answer within ${answerWithinMs} ms to ${JSON.stringify(ask)}`);
    return reply;
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

/** Bytes that are not HTTP at all, straight into the TLS socket. */
async function rawStorm(berth: Berth, random: Seeded): Promise<void> {
  const { hostname, port } = new URL(berth.url);
  const heads = [
    "GET / HTTP/9.9\r\n\r\n",
    "\0\0\0\0",
    "GET /api\r\n\r\n",
    "POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n",
    "POST /api/v1/namespaces HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "POST /api HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
    `GET /${"a".repeat(70_000)} HTTP/1.1\r\n\r\n`,
  ];
  for (let i = 0; i < 300; i++) {
    const head = random.chance(0.5) ? (heads[i % heads.length] ?? "") : random.text(200);
    await new Promise<void>((resolve) => {
      const socket = tlsConnect({ host: hostname, port: Number(port), ca: berth.ca });
      const close = (): void => {
        socket.destroy();
        resolve();
      };
      socket.once("secureConnect", () => socket.write(`${head}\r\n\r\n`));
      socket.once("data", close);
      socket.once("error", close);
      socket.once("close", close);
      setTimeout(close, 200).unref();
    });
  }
}

function residentMegabytes(berth: Berth): number {
  const status = readFileSync(`/proc/${berth.pid}/status`, "utf8");
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
}
