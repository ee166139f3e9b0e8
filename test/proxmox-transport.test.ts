import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type Server } from "node:https";
import { createServer as createPlainServer } from "node:net";
import type { Duplex } from "node:stream";
import { after, before, describe, it } from "node:test";
import { systemClock, systemRandom } from "../src/app/system.ts";
import { createAuthority, fingerprintOf, issueServerCertificate } from "../src/apiserver/index.ts";
import type { KeyPair } from "../src/apiserver/index.ts";
import { httpsTransport, proxmoxDriver } from "../src/drivers/proxmox/index.ts";
import type { PveRequest, TlsTrust } from "../src/drivers/proxmox/index.ts";
import { startProxmoxSimulator } from "../src/sim/index.ts";

const token = { id: "berth@pve!prod", secret: "s3cret" };
const read: PveRequest = { method: "GET", path: "/version", params: { a: "x=y;z" } };
const write: PveRequest = {
  method: "POST",
  path: "/nodes/pve1/qemu",
  params: { vmid: 100, description: "a&b" },
  mayWrite: () => true,
};

interface Arrived {
  readonly method: string;
  readonly url: string;
  readonly authorization: string | undefined;
  readonly body: string;
}

describe("the transport to Proxmox", () => {
  let server: Server;
  let authority: KeyPair;
  let fingerprint = "";
  let url = "";
  const arrived: Arrived[] = [];
  const sockets = new Set<Duplex>();
  let connections = 0;
  let answer: "well" | "fine" | "late" | "reset" | "half" = "well";

  before(async () => {
    const environment = { clock: systemClock, random: systemRandom };
    authority = await createAuthority(environment);
    const pair = await issueServerCertificate(authority, ["localhost", "127.0.0.1"], environment);
    fingerprint = fingerprintOf(pair.cert);
    server = createServer({ cert: pair.cert, key: pair.key }, (request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const { method = "", url: path = "", headers } = request;
        const body = Buffer.concat(chunks).toString();
        arrived.push({ method, url: path, authorization: headers.authorization, body });
        if (answer === "reset") return void request.socket.destroy();
        if (answer === "late") return;
        response.statusCode = answer === "fine" ? 200 : 500;
        response.statusMessage = "VM is locked (backup)";
        if (answer === "half") {
          response.setHeader("Content-Length", "100");
          response.write('{"da');
          return void setImmediate(() => request.socket.destroy());
        }
        response.end('{"data":null}');
      });
    });
    server.on("secureConnection", () => connections++);
    server.on("connection", (socket) => sockets.add(socket));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    assert(typeof address === "object" && address !== null);
    url = `https://127.0.0.1:${address.port}`;
  });

  after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });

  function transport(tls: TlsTrust, endpoints = [url], timeoutMs = 5_000) {
    arrived.length = 0;
    answer = "well";
    return httpsTransport({ endpoints, token, tls, timeoutMs, clock: systemClock });
  }

  it("sends the token, parameters in query or body, and gives back the reason phrase", async () => {
    const { send, close } = transport({ fingerprints: [fingerprint.toLowerCase()] });
    const reply = await send(read);
    assert(reply.type === "answered");
    const { date, ...rest } = reply;
    assert(!Number.isNaN(Date.parse(date ?? "")), "the server's own time");
    assert.deepEqual(rest, {
      type: "answered",
      status: 500,
      reason: "VM is locked (backup)",
      body: '{"data":null}',
      from: url,
    });
    await send(write);
    close();
    assert.deepEqual(arrived, [
      {
        method: "GET",
        url: "/api2/json/version?a=x%3Dy%3Bz",
        authorization: "PVEAPIToken=berth@pve!prod=s3cret",
        body: "",
      },
      {
        method: "POST",
        url: "/api2/json/nodes/pve1/qemu",
        authorization: "PVEAPIToken=berth@pve!prod=s3cret",
        body: "vmid=100&description=a%26b",
      },
    ]);
  });

  it("uses a connection again, up to the hundred requests that the server allows", async () => {
    const { send, close } = transport({ ca: authority.cert });
    answer = "fine";
    const earlier = connections;
    for (let count = 0; count < 3; count++) await send(read);
    assert.equal(connections - earlier, 1);
    for (let count = 0; count < 97; count++) await send(read);
    close();
    assert.equal(connections - earlier, 2);
  });

  it("uses no connection again after an error: the server closes it", async () => {
    const { send, close } = transport({ ca: authority.cert });
    const earlier = connections;
    for (let count = 0; count < 3; count++) await send(read);
    close();
    assert.equal(connections - earlier, 3);
  });

  it("gives an idle connection up before the server does, which waits for five seconds", async () => {
    const { send, close } = transport({ ca: authority.cert });
    answer = "fine";
    server.keepAliveTimeout = 60_000;
    const opened: Promise<Duplex[]> = once(server, "connection");
    await send(read);
    const [socket] = await opened;
    const sinceMs = systemClock.monotonicMs();
    assert(socket);
    await once(socket, "close", { signal: AbortSignal.timeout(10_000) });
    close();
    assert(systemClock.monotonicMs() - sinceMs < 5_000);
  });

  it("uploads a file, at hand or as it comes", async () => {
    const { send, close } = transport({ ca: authority.cert });
    async function* chunks(): AsyncIterable<Uint8Array> {
      for (let count = 0; count < 64; count++) yield Buffer.alloc(16 * 1024, "x");
    }
    const upload = { method: "POST", path: "/nodes/pve1/storage/local/upload" } as const;
    await send({ ...upload, file: { name: "a.iso", content: Buffer.from("seed") } });
    await send({ ...upload, file: { name: "b.raw", sizeBytes: 1024 ** 2, chunks: chunks() } });
    close();
    const bodies = arrived.map(({ body }) => body);
    assert.match(bodies[0] ?? "", /filename="a\.iso"\r\n[^]*\r\n\r\nseed\r\n--/);
    assert((bodies[1]?.length ?? 0) > 1024 ** 2);
    assert(bodies[1]?.endsWith("--\r\n"));
  });

  it("shows the token to no server that does not prove itself", async () => {
    const wrong = fingerprint.replace(/^../, (hex) => (hex === "00" ? "01" : "00"));
    for (const tls of [
      { fingerprints: [wrong] },
      {},
      { ca: authority.cert, serverName: "other" },
    ]) {
      const { send, close } = transport(tls);
      const reply = await send(write);
      close();
      assert(reply.type === "notSent" && reply.why === "certificate", JSON.stringify(reply));
      assert.deepEqual(arrived, []);
    }
  });

  it("asks the fence on a connection that stands, and sends nothing if it says no", async () => {
    const { send, close } = transport({ fingerprints: [fingerprint] });
    let asked = 0;
    const mayWrite = (): boolean => {
      asked++;
      return false;
    };
    const reply = await send({ ...write, mayWrite });
    close();
    assert(reply.type === "notSent" && reply.why === "fenced");
    assert.equal(asked, 1);
    assert.deepEqual(arrived, []);
  });

  it("calls it lost when the request left and no whole answer came", async () => {
    for (const what of ["reset", "half", "late"] as const) {
      const { send, close } = transport({ fingerprints: [fingerprint] }, [url], 300);
      answer = what;
      const reply = await send(write);
      close();
      assert.equal(reply.type, "lost", what);
      assert.equal(arrived.length, 1, what);
    }
  });

  it("calls it not sent when nothing listens or nothing speaks TLS in time", async () => {
    const silent = createPlainServer((socket) => sockets.add(socket));
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const address = silent.address();
    assert(typeof address === "object" && address !== null);
    const quiet = `https://127.0.0.1:${address.port}`;
    for (const dead of ["https://127.0.0.1:1", quiet]) {
      const { send, close } = transport({ fingerprints: [fingerprint] }, [dead], 300);
      // The fence is asked once the connection stands: never before, when it could grow old.
      const mayWrite = (): boolean => assert.fail("asked without a connection");
      const reply = await send({ ...write, mayWrite });
      close();
      assert(reply.type === "notSent" && reply.why === "unreachable", JSON.stringify(reply));
    }
    for (const socket of sockets) socket.destroy();
    silent.close();
  });

  it("reads from the next endpoint when one is dead, and writes to none twice", async () => {
    const endpoints = ["https://127.0.0.1:1", url];
    const reading = transport({ fingerprints: [fingerprint] }, endpoints);
    assert.equal((await reading.send(read)).type, "answered");
    reading.close();
    const writing = transport({ fingerprints: [fingerprint] }, endpoints);
    assert.equal((await writing.send(write)).type, "notSent");
    assert.equal((await writing.send(write)).type, "answered");
    writing.close();
    assert.equal(arrived.length, 1);
  });
});

describe("the driver over HTTPS", () => {
  it("sees a simulated cluster", async () => {
    const clock = systemClock;
    const random = systemRandom;
    const simulator = await startProxmoxSimulator({ port: 0, version: "9.2", clock, random });
    const { send, close } = httpsTransport({
      endpoints: [simulator.url],
      token: { id: simulator.tokenId, secret: simulator.tokenSecret },
      tls: { ca: simulator.ca },
      timeoutMs: 5_000,
      clock,
    });
    const driver = proxmoxDriver({ send, tokenId: simulator.tokenId, clock, random, close });
    const system = await driver.system();
    const inventory = await driver.inventory();
    driver.close();
    await simulator.close();
    assert(system.ok, JSON.stringify(system));
    const authority = fingerprintOf(simulator.ca);
    assert.equal(system.value.systemId, `pve-root-ca:${authority.toUpperCase()}`);
    assert(inventory.ok, JSON.stringify(inventory));
    assert.deepEqual(
      inventory.value.nodes.map(({ name }) => name),
      [...simulator.nodes],
    );
  });
});
