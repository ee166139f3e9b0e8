import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { connect, createServer } from "node:tls";
import { parse } from "yaml";
import { VirtualClock } from "../../kernel/virtual-clock.ts";
import { createSeededRandom } from "../fixture.ts";
import type { KeyPair } from "./index.ts";
import {
  createAuthority,
  fingerprintOf,
  issueServerCertificate,
  isServerName,
  kubeconfigOf,
  localNames,
  renewalReason,
} from "./index.ts";

const dayMs = 24 * 60 * 60 * 1000;
// The handshakes below are checked by node's own clock, so the certificates have to be of today.
const nowMs = performance.timeOrigin;
const clock = new VirtualClock(nowMs);
const random = createSeededRandom(7);
const environment = { clock, random };
const names = [...localNames, "berth.example.org", "10.1.2.3"];
const authority = await createAuthority(environment);
const server = await issueServerCertificate(authority, names, environment);

test("the authority signs certificates, is its own issuer, and lasts ten years", () => {
  const certificate = new X509Certificate(authority.cert);
  assert.equal(certificate.ca, true);
  assert.equal(certificate.checkIssued(certificate), true);
  assert.equal(certificate.verify(certificate.publicKey), true);
  const years = (certificate.validToDate.getTime() - nowMs) / dayMs / 365;
  assert.equal(Math.round(years), 10);
  assert.match(authority.key, /^-----BEGIN PRIVATE KEY-----\n/);
});

test("a server's certificate is for servers only, for its names, and for one year", () => {
  const certificate = new X509Certificate(server.cert);
  assert.equal(certificate.ca, false);
  assert.deepEqual(certificate.keyUsage, ["1.3.6.1.5.5.7.3.1"]);
  assert.equal(certificate.verify(new X509Certificate(authority.cert).publicKey), true);
  assert.equal(certificate.checkHost("localhost"), "localhost");
  assert.equal(certificate.checkIP("127.0.0.1"), "127.0.0.1");
  assert.equal(certificate.checkIP("::1") !== undefined, true);
  assert.equal(certificate.checkHost("elsewhere.example.org"), undefined);
  assert.equal(Math.round((certificate.validToDate.getTime() - nowMs) / dayMs), 365);
});

test("two authorities never have the same name or key", async () => {
  const other = await createAuthority(environment);
  assert.notEqual(fingerprintOf(other.cert), fingerprintOf(authority.cert));
  assert.notEqual(
    new X509Certificate(other.cert).subject,
    new X509Certificate(authority.cert).subject,
  );
});

test("a client that trusts the authority completes a handshake, by name and by address", async () => {
  for (const servername of ["localhost", "berth.example.org"]) {
    assert.equal(await handshake({ ca: authority.cert, servername }), "authorized");
  }
});

test("a client refuses the server under another name, or without the authority", async () => {
  const wrongName = await handshake({ ca: authority.cert, servername: "evil.example.org" });
  assert.equal(wrongName, "ERR_TLS_CERT_ALTNAME_INVALID");
  const other = await createAuthority(environment);
  assert.notEqual(await handshake({ ca: other.cert, servername: "localhost" }), "authorized");
});

async function handshake(options: { ca: string; servername: string }): Promise<string> {
  const listener = createServer({ key: server.key, cert: server.cert });
  listener.on("tlsClientError", () => {});
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const { port } = listener.address() as AddressInfo;
  const socket = connect({ port, host: "127.0.0.1", ...options });
  try {
    return await new Promise<string>((resolve) => {
      socket.once("secureConnect", () => resolve("authorized"));
      socket.once("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? "error"));
    });
  } finally {
    socket.destroy();
    listener.close();
  }
}

test("a good certificate is kept", () => {
  assert.equal(renewalReason(server, { authority, names, nowMs }), undefined);
  assert.equal(renewalReason(server, { authority, names: localNames, nowMs }), undefined);
  const nearlyOld = nowMs + 240 * dayMs;
  assert.equal(renewalReason(server, { authority, names, nowMs: nearlyOld }), undefined);
});

test("a certificate is made anew when its time, names, authority or key no longer fit", async () => {
  const old = nowMs + 250 * dayMs;
  assert.match(reason({ nowMs: old }), /third of its time/);
  assert.match(reason({ names: [...names, "new.example.org"] }), /does not name new.example.org/);
  assert.match(reason({ names: ["10.9.9.9"] }), /does not name 10.9.9.9/);
  const other = await createAuthority(environment);
  assert.match(reason({ authority: other }), /another CA/);
  const stranger: KeyPair = { cert: server.cert, key: other.key };
  assert.match(renewalReason(stranger, { authority, names, nowMs }) ?? "", /not of its key/);
});

function reason(changes: Partial<Parameters<typeof renewalReason>[1]>): string {
  return renewalReason(server, { authority, names, nowMs, ...changes }) ?? "";
}

test("names that cannot stand in a certificate are known before one is made", async () => {
  for (const name of ["localhost", "a.b", "*.example.org", "10.0.0.1", "fe80::1"]) {
    assert.equal(isServerName(name), true, name);
  }
  for (const name of ["", "a b", "a,b", "-a", "a..b", "https://a", "a:1", "x".repeat(300)]) {
    assert.equal(isServerName(name), false, name);
  }
  await assert.rejects(issueServerCertificate(authority, ["a b"], environment), /a b can stand/);
});

test("a wildcard name counts as named only by itself", async () => {
  const wild = await issueServerCertificate(authority, ["*.example.org"], environment);
  assert.equal(renewalReason(wild, { authority, names: ["*.example.org"], nowMs }), undefined);
  assert.match(renewalReason(wild, { authority, names: ["a.example.org"], nowMs }) ?? "", /name a/);
});

test("a kubeconfig names the server, trusts the authority and carries the token", () => {
  const text = kubeconfigOf({
    server: "https://127.0.0.1:6443",
    ca: authority.cert,
    token: "berth_abc",
    name: "ada",
  });
  const config = parse(text);
  const [cluster] = config.clusters;
  assert.equal(config["current-context"], "berth");
  assert.equal(cluster.cluster.server, "https://127.0.0.1:6443");
  const ca = Buffer.from(cluster.cluster["certificate-authority-data"], "base64").toString();
  assert.equal(ca, authority.cert);
  assert.deepEqual(config.users, [{ name: "ada", user: { token: "berth_abc" } }]);
  assert.equal(config.contexts[0].context.user, "ada");
});
