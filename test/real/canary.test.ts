import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { gunzipSync } from "node:zlib";
import { systemClock, systemRandom } from "../../src/app/system.ts";
import {
  createAuthority,
  fingerprintOf,
  issueServerCertificate,
} from "../../src/apiserver/index.ts";
import { type Berth, runBerth, startBerth, temporaryFolder } from "./support/berth.ts";
import { type Ask, bodyOf, connect, type Http } from "./support/http.ts";
import "./support/cleanup.ts";

/**
 * Secrets are planted wherever people put them, things are made to fail loudly, and then every
 * place is searched where a secret could have got to.
 */

const canary = (): string => `canary${randomBytes(12).toString("hex")}`;

/** What nobody may find outside of the Secrets that hold them. */
const planted = {
  hypervisorToken: canary(),
  unreachableToken: canary(),
  userData: canary(),
  password: canary(),
  badSecret: canary(),
  wrongToken: canary(),
  urlPassword: canary(),
};
/** In a field of an object that everybody may read: their place, and no other. */
const inFields = { urlSignature: canary(), inlineUserData: canary() };

const api = "/apis/berth.dev/v1alpha1";
const machines = `${api}/namespaces/default/virtualmachines`;
const folder = temporaryFolder("canary");
const outside = temporaryFolder("canary-bundle");
const found = new Map<string, string>();
const errors: string[] = [];
let loud: { url: string; fingerprint: string; close(): void };
let berth: Berth;
let http: Http;
let userToken = "";

before(async () => {
  loud = await startLoudHypervisor();
  berth = await startBerth({ data: folder.path, demo: true, args: ["--verbose"] });
  http = connect(berth);
  const added = await runBerth(["user", "add", "ada", "--role", "edit", "--data", berth.data]);
  userToken = /token: "?([^"\s]+)/.exec(added.stdout)?.[1] ?? assert.fail(added.stderr);
  await plantSecrets();
  await provoke();
  await until(isAllSettled, "the machines and Hypervisors are not as expected");
  await collect();
});

after(async () => {
  http.close();
  await berth.stop();
  loud.close();
  folder.remove();
  outside.remove();
});

/** A hypervisor that answers everything with a refusal which repeats what it was sent. */
async function startLoudHypervisor(): Promise<typeof loud> {
  const environment = { clock: systemClock, random: systemRandom };
  const authority = await createAuthority(environment);
  const pair = await issueServerCertificate(authority, ["127.0.0.1"], environment);
  const server: Server = createServer(pair, (request, response) => {
    const message = `I was sent ${request.headers.authorization} for ${request.url}`;
    response.writeHead(500, message).end(JSON.stringify({ data: null, message }));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert(typeof address === "object" && address !== null);
  return {
    url: `https://127.0.0.1:${address.port}`,
    fingerprint: fingerprintOf(pair.cert),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function create(path: string, body: object): Promise<void> {
  const reply = await http.ask({ method: "POST", path, body });
  assert.equal(reply.status, 201, reply.text);
}

function secret(name: string, namespace: string, data: Record<string, string>): Promise<void> {
  return create(`/api/v1/namespaces/${namespace}/secrets`, {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name },
    stringData: data,
  });
}

async function hypervisor(name: string, url: string, fingerprint: string): Promise<void> {
  await create(`${api}/hypervisors`, {
    apiVersion: "berth.dev/v1alpha1",
    kind: "Hypervisor",
    metadata: { name },
    spec: {
      type: "proxmox",
      endpoints: [url],
      credentials: { secretRef: { namespace: "berth-system", name } },
      tls: { fingerprints: [fingerprint] },
      limits: { pollSeconds: 1 },
    },
  });
}

async function image(name: string, source: object): Promise<void> {
  const meta = { apiVersion: "berth.dev/v1alpha1", kind: "VMImage", metadata: { name } };
  await create(`${api}/namespaces/default/vmimages`, {
    ...meta,
    spec: { source, format: "qcow2" },
  });
}

async function machine(name: string, spec: object): Promise<void> {
  await create(machines, {
    apiVersion: "berth.dev/v1alpha1",
    kind: "VirtualMachine",
    metadata: { name },
    spec: {
      hypervisorRef: { name: "demo" },
      source: { image: { name: "debian" } },
      cpu: { cores: 1 },
      memory: { size: "1Gi" },
      disks: [{ name: "root", size: "20Gi" }],
      ...spec,
    },
  });
}

async function plantSecrets(): Promise<void> {
  const tokenId = "berth@pve!berth";
  await secret("loud", "berth-system", { tokenId, tokenSecret: planted.hypervisorToken });
  await secret("away", "berth-system", { tokenId, tokenSecret: planted.unreachableToken });
  await secret("guest", "default", {
    userData: `#cloud-config\nwrite_files: [{path: /x, content: ${planted.userData}}]\n`,
    passwordHash: `$6$salt$${planted.password}`,
  });
  await hypervisor("loud", loud.url, loud.fingerprint);
  // Nothing listens on the port for discarding.
  await hypervisor("away", "https://127.0.0.1:9", loud.fingerprint);
  const volume = { hypervisorRef: { name: "demo" }, id: debianVolume };
  await image("debian", { volume });
  const checksum = `sha256:${"0".repeat(64)}`;
  const url = `https://images.invalid/x.qcow2?signature=${inFields.urlSignature}`;
  await image("signed", { http: { url, checksum } });
  const userData = { secretRef: { name: "guest" } };
  const user = { name: "ops", passwordHashSecretRef: { name: "guest" } };
  await machine("guest", { cloudInit: { userData, user } });
  await machine("inline", {
    cloudInit: { userData: { inline: `#cloud-config\n# ${inFields.inlineUserData}\n` } },
  });
  await machine("unsigned", { source: { image: { name: "signed" } } });
  await machine("loud", { hypervisorRef: { name: "loud" } });
  await machine("away", { hypervisorRef: { name: "away" } });
}

const debianVolume = "local:import/debian-12-generic-amd64.qcow2";

/** Requests that are refused, with a secret in each. What is answered must not repeat it. */
async function provoke(): Promise<void> {
  const bad = { apiVersion: "v1", kind: "Secret", metadata: { name: "bad" } };
  const secrets = "/api/v1/namespaces/default/secrets";
  const source = { http: { url: `https://u:${planted.urlPassword}@x.invalid/a`, checksum: "x" } };
  const images = `${api}/namespaces/default/vmimages`;
  const imageMeta = { apiVersion: "berth.dev/v1alpha1", kind: "VMImage", metadata: { name: "x" } };
  const asked: Ask[] = [
    { method: "POST", path: secrets, body: { ...bad, data: { a: `!${planted.badSecret}!` } } },
    { method: "POST", path: secrets, body: { ...bad, data: planted.badSecret } },
    { method: "POST", path: secrets, body: { ...bad, stringData: { a: [planted.badSecret] } } },
    { method: "POST", path: secrets, raw: `{"kind": "Secret", ${planted.badSecret}` },
    { method: "POST", path: secrets, raw: planted.badSecret, type: "application/yaml" },
    { method: "POST", path: images, body: { ...imageMeta, spec: { source, format: "qcow2" } } },
    { path: "/api/v1/secrets", token: planted.wrongToken },
    { path: `/api/v1/secrets?token=${planted.wrongToken}`, token: null },
  ];
  for (const ask of asked) {
    const reply = await http.ask(ask);
    assert.ok(reply.status >= 400, `${ask.method ?? "GET"} ${ask.path} was ${reply.status}`);
    errors.push(JSON.stringify(reply.headers), reply.text);
  }
}

async function isAllSettled(): Promise<boolean> {
  const failing = ["loud", "away"].map((name) => isFailing(`${api}/hypervisors/${name}`));
  const waiting = ["loud", "away"].map((name) => isFailing(`${machines}/${name}`));
  const ready = ["guest", "inline"].map((name) => isReady(`${machines}/${name}`));
  const signed = isFailing(`${api}/namespaces/default/vmimages/signed`);
  return (await Promise.all([...failing, ...waiting, ...ready, signed])).every(Boolean);
}

async function isFailing(path: string): Promise<boolean> {
  return bodyOf(await http.ask({ path })).status?.failure !== undefined;
}

async function isReady(path: string): Promise<boolean> {
  const conditions: { type: string; status: string }[] =
    bodyOf(await http.ask({ path })).status?.conditions ?? [];
  return conditions.some(({ type, status }) => type === "Ready" && status === "True");
}

async function until(condition: () => Promise<boolean>, complaint: string): Promise<void> {
  const deadlineMs = Date.now() + 90_000;
  while (!(await condition())) {
    assert.ok(Date.now() < deadlineMs, complaint);
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
}

/** Everything that a person, a program or a thief could look at. */
async function collect(): Promise<void> {
  found.set("errors", errors.join("\n"));
  found.set("metrics", (await http.ask({ path: "/metrics" })).text);
  await collectObjects();
  await collectCommands();
  found.set("the log on the terminal", berth.output());
  collectFolder();
}

async function collectObjects(): Promise<void> {
  const core = ["namespaces", "configmaps", "events", "serviceaccounts"];
  const ours = ["hypervisors", "virtualmachines", "vmimages", "claims", "vmnetworks", "vmclasses"];
  const paths = [...core.map((name) => `/api/v1/${name}`), ...ours.map((name) => `${api}/${name}`)];
  for (const path of [...paths, "/apis/coordination.k8s.io/v1/leases"]) {
    const reply = await http.ask({ path });
    assert.equal(reply.status, 200, `${path}: ${reply.text}`);
    found.set(`GET ${path}`, reply.text);
  }
}

async function collectCommands(): Promise<void> {
  const bundle = join(outside.path, "bundle.tar.gz");
  const at = ["--data", berth.data];
  const lines: string[][] = [
    ["get", "vm,hypervisor,claim,event", "-A"],
    ["get", "secrets", "-A"],
    ["describe", "secret", "guest"],
    ["describe", "hypervisor", "loud"],
    ["describe", "vm", "guest"],
    ["why", "vm/loud"],
    ["why", "vm/away"],
    ["why", "vm/unsigned"],
    ["doctor"],
    ["user", "list"],
    ["support", "--out", bundle],
  ];
  for (const line of lines) {
    const { stdout, stderr } = await runBerth([...line, ...at]);
    found.set(`berth ${line.slice(0, 3).join(" ")}`, `${stdout}\n${stderr}`);
  }
  found.set("the support bundle", gunzipSync(readFileSync(bundle)).toString("latin1"));
}

/** The files of the installation, but for the keys themselves and the simulated hypervisor. */
function collectFolder(): void {
  const own = readdirSync(folder.path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && !entry.parentPath.endsWith("demo"))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !path.endsWith("kubeconfig"));
  for (const path of own) found.set(path.slice(folder.path.length + 1), bytesOf(path));
}

function bytesOf(path: string): string {
  return readFileSync(path).toString("latin1");
}

/** A secret as it is, in base64 at each of its three positions, and percent-encoded bytes. */
function formsOf(text: string): string[] {
  const shifted = ["", "x", "xx"].map((first) => {
    const encoded = Buffer.from(first + text).toString("base64");
    // The first and last characters mix with what stands around it.
    return encoded.slice(first === "" ? 0 : 4, -4);
  });
  return [text, ...shifted, Buffer.from(text).toString("hex")];
}

function placesOf(text: string): string[] {
  const forms = formsOf(text);
  return [...found].flatMap(([place, content]) => {
    return forms.some((form) => content.includes(form)) ? [place] : [];
  });
}

test("the search finds what is there, in every form", async () => {
  const reply = await http.ask({ path: "/api/v1/namespaces/default/secrets/guest" });
  assert.equal(reply.status, 200);
  found.set("the Secret itself", reply.text);
  assert.deepEqual(placesOf(planted.userData), ["the Secret itself"]);
  found.delete("the Secret itself");
  assert.ok(found.get("berth.db")?.startsWith("SQLite format 3"));
  assert.ok((found.get("the log on the terminal") ?? "").includes("Hypervisor loud"));
  assert.ok((found.get("the support bundle") ?? "").includes("berth-support/objects/secrets.json"));
});

test("the hypervisor did repeat the token, and what it said is shown without it", () => {
  const shown = found.get(`GET ${api}/hypervisors`) ?? "";
  assert.match(shown, /I was sent PVEAPIToken=berth@pve!berth=\[redacted\]/);
});

for (const [name, text] of Object.entries(planted)) {
  test(`${name} is nowhere to be found`, () => assert.deepEqual(placesOf(text), []));
}

test("tokens of users are nowhere to be found", () => {
  assert.deepEqual(placesOf(userToken), []);
  assert.deepEqual(placesOf(berth.token), []);
});

test("what stands in a field of an object is there, and in no log, event, metric or bundle", () => {
  const mayShow = new Set([
    `GET ${api}/virtualmachines`,
    `GET ${api}/vmimages`,
    "berth.db",
    "berth.db-wal",
    "berth get vm,hypervisor,claim,event -A",
  ]);
  for (const [name, text] of Object.entries(inFields)) {
    const places = placesOf(text).filter((place) => !mayShow.has(place));
    assert.deepEqual(places, [], name);
  }
});
