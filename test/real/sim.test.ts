import assert from "node:assert/strict";
import { Agent, request } from "node:https";
import type { Socket } from "node:net";
import { join } from "node:path";
import { describe, test } from "node:test";
import { checkServerIdentity, connect, type PeerCertificate } from "node:tls";
import { systemClock, systemRandom } from "../../src/app/system.ts";
import { type Simulator, startProxmoxSimulator } from "../../src/sim/index.ts";
import { temporaryFolder } from "./support/berth.ts";

interface Answer {
  readonly status: number;
  readonly reason: string;
  readonly body: string;
  readonly connection: string | undefined;
  readonly fingerprint: string;
}

interface Question {
  readonly method?: string;
  readonly path: string;
  readonly body?: string;
}

describe("the Proxmox simulator over HTTPS", () => {
  test("its certificate is of its CA and has its fingerprint, and its token works", async () => {
    const simulator = await start();
    const answer = await ask(simulator, { path: "/api2/json/version" });
    assert.equal(answer.status, 200);
    assert.match(answer.body, /"release":"9\.2"/);
    assert.equal(answer.fingerprint, simulator.fingerprint);
    await simulator.close();
  });

  test("an error is a reason phrase, and closes the connection", async () => {
    const simulator = await start();
    const answer = await ask(simulator, { path: "/api2/json/nodes/pve1/qemu/100/config" });
    const text = "Configuration file 'nodes/pve1/qemu-server/100.conf' does not exist";
    assert.deepEqual([answer.status, answer.reason, answer.connection], [500, text, "close"]);
    await simulator.close();
  });

  test("a connection is closed after a hundred requests", async () => {
    const simulator = await start();
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const sockets = new Set<Socket>();
    for (let count = 1; count <= 101; count++) {
      const { socket, connection } = await askKept(simulator, agent);
      sockets.add(socket);
      if (count === 100) assert.equal(connection, "close");
    }
    assert.equal(sockets.size, 2);
    agent.destroy();
    await simulator.close();
  });

  test("a connection that is idle for five seconds is closed", async () => {
    const simulator = await start();
    const idleMs = await idleTime(simulator);
    await simulator.close();
    assert.ok(idleMs > 4_500 && idleMs < 5_900, `it was closed after ${idleMs} ms`);
  });

  test("test hooks are served only where they were asked for", async () => {
    const question = { method: "POST", path: "/_sim/set-lock", body: '{"vmid":1,"lock":"x"}' };
    const plain = await start();
    assert.notEqual((await ask(plain, question)).status, 200);
    await plain.close();
    const hooked = await start({ hooks: true });
    assert.equal((await ask(hooked, question)).status, 200);
    assert.equal((await ask(hooked, { ...question, path: "/_sim/nosuch" })).status, 404);
    await hooked.close();
  });

  test("what it acknowledged is there when it is started again, with the same credentials", async () => {
    const folder = temporaryFolder("sim");
    const dataFile = join(folder.path, "cluster.json");
    const first = await start({ dataFile });
    const made = await ask(first, {
      method: "POST",
      path: "/api2/json/nodes/pve1/qemu",
      body: "vmid=100&name=kept",
    });
    assert.equal(made.status, 200);
    const second = await start({ dataFile });
    const { tokenSecret, fingerprint } = second;
    assert.deepEqual([tokenSecret, fingerprint], [first.tokenSecret, first.fingerprint]);
    const found = await ask(second, { path: "/api2/json/nodes/pve1/qemu/100/config" });
    assert.equal(found.status, 200);
    await Promise.all([first.close(), second.close()]);
    folder.remove();
  });
});

function start(options: { hooks?: boolean; dataFile?: string } = {}): Promise<Simulator> {
  const environment = { clock: systemClock, random: systemRandom };
  return startProxmoxSimulator({ port: 0, version: "9.2", ...environment, ...options });
}

/** One request on a connection that is kept; tells which one it was. */
function askKept(
  { url, ca, tokenId, tokenSecret }: Simulator,
  agent: Agent,
): Promise<{ socket: Socket; connection: string | undefined }> {
  const headers = { authorization: `PVEAPIToken=${tokenId}=${tokenSecret}` };
  return new Promise((resolve, reject) => {
    const sent = request(`${url}/api2/json/version`, { ca, agent, headers }, (response) => {
      const { socket } = response;
      const { connection } = response.headers;
      response.resume().on("end", () => resolve({ socket, connection }));
    });
    sent.on("error", reject);
    sent.end();
  });
}

/** How long the server keeps a connection on which nothing more is asked. */
function idleTime({ url, ca, tokenId, tokenSecret }: Simulator): Promise<number> {
  const { hostname: host, port } = new URL(url);
  const token = `Authorization: PVEAPIToken=${tokenId}=${tokenSecret}`;
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: Number(port), ca, servername: "" });
    let answeredMs = 0;
    socket.on("error", reject);
    socket.on("data", () => (answeredMs = systemClock.monotonicMs()));
    socket.on("close", () => resolve(systemClock.monotonicMs() - answeredMs));
    socket.write(`GET /api2/json/version HTTP/1.1\r\nHost: ${host}\r\n${token}\r\n\r\n`);
  });
}

function ask(simulator: Simulator, { method = "GET", path, body }: Question): Promise<Answer> {
  const { url, ca, tokenId, tokenSecret } = simulator;
  let fingerprint = "";
  return new Promise((resolve, reject) => {
    const sent = request(`${url}${path}`, {
      method,
      ca,
      agent: false,
      headers: { authorization: `PVEAPIToken=${tokenId}=${tokenSecret}` },
      checkServerIdentity: (host: string, certificate: PeerCertificate) => {
        fingerprint = certificate.fingerprint256;
        return checkServerIdentity(host, certificate);
      },
    });
    sent.on("error", reject);
    sent.on("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () => {
        resolve({
          status: response.statusCode ?? 0,
          reason: response.statusMessage ?? "",
          body: Buffer.concat(chunks).toString("utf8"),
          connection: response.headers.connection,
          fingerprint,
        });
      });
    });
    sent.end(body);
  });
}
