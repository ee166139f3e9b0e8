import assert from "node:assert/strict";
import { beforeEach, describe, test } from "node:test";
import type { ExaminedSpec } from "../../app/index.ts";
import type { Probe, ShownCertificate } from "../../drivers/proxmox/index.ts";
import type { Diagnosis } from "../../hypervisor/index.ts";
import type { KubeObject } from "../../kernel/object.ts";
import { CommandError } from "../command.ts";
import { connect } from "../commands/connect.ts";
import { type Bench, createBench, type Ran } from "../objects/testing.ts";
import { nameFor, readEndpoint, readName } from "./endpoints.ts";
import type { Person } from "./person.ts";
import { type ConnectTools, runConnect } from "./run.ts";
import { parseToken } from "./token.ts";
import { readFingerprint } from "./trust.ts";

const pin = fingerprintOf("AA");
const otherPin = fingerprintOf("BB");
const certificate: ShownCertificate = {
  fingerprint: pin,
  subject: "CN=pve1.lan",
  issuer: "CN=PVE Cluster Manager CA",
  validFromMs: Date.UTC(2025, 0, 1),
  validToMs: Date.UTC(2027, 0, 1),
  names: ["pve1.lan"],
};
const systemId = "pve-root-ca:01";
const well: Diagnosis = {
  systemId,
  version: "9.2.11",
  findings: [{ check: "Version", level: "ok", message: "Proxmox VE 9.2.11" }],
};
const hypervisors = "/apis/berth.dev/v1alpha1/hypervisors";
const secrets = "/api/v1/namespaces/berth-system/secrets";
const token = ["--token-id", "berth@pve!prod"];

let bench: Bench;
let probes: Record<string, Probe>;
let diagnosis: Diagnosis;
let asked: { questions: string[]; examined: { spec: ExaminedSpec; credentials: object }[] };
let answers: string[];
let isPresent: boolean;

beforeEach(async () => {
  bench = await createBench();
  const namespace = { apiVersion: "v1", kind: "Namespace", metadata: { name: "berth-system" } };
  await bench.write("POST", "/api/v1/namespaces", namespace);
  bench.environment.set("BERTH_TOKEN_SECRET", "uuid");
  probes = {};
  diagnosis = well;
  asked = { questions: [], examined: [] };
  answers = [];
  isPresent = false;
});

const person: Person = {
  get isPresent() {
    return isPresent;
  },
  ask: async (question) => answer(question),
  askSecretly: async (question) => answer(question),
};

function answer(question: string): string {
  asked.questions.push(question);
  return answers.shift() ?? "";
}

const tools: ConnectTools = {
  person,
  probe: async (url) => probes[url] ?? { is: "shown", certificate, refusal: "SELF_SIGNED" },
  createDoctor: (spec, credentials) => {
    asked.examined.push({ spec, credentials });
    return {
      diagnose: async () => diagnosis,
      snapshot: async () => ({ ok: true, value: {} }),
      ownWork: async () => ({ ok: true, value: { tasks: [], unread: [] } }),
      close: () => undefined,
    };
  },
};

/** Runs it, with controllers that find every new Hypervisor ready. */
async function run(...args: string[]): Promise<Ran & { text: string }> {
  const work = bench.run(connect, (call, machine) => runConnect(call, machine, tools), [
    "proxmox",
    ...args,
  ]);
  const state = { isOver: false };
  void work.then(() => (state.isOver = true));
  while (!state.isOver) {
    for (let turn = 0; turn < 200; turn++) await Promise.resolve();
    await reconcile();
    bench.clock.advance(500);
  }
  const ran = await work;
  return { ...ran, text: [...ran.out, ...ran.notes].join("\n") };
}

async function reconcile(): Promise<void> {
  const list = (await read(hypervisors)) as unknown as { items: KubeObject[] };
  for (const { metadata } of list.items) {
    const conditions = [condition("True", "Connected")];
    const status = { conditions, observedGeneration: metadata.generation };
    await bench.write("PATCH", `${hypervisors}/${metadata.name}/status`, { status });
  }
}

function fingerprintOf(byte: string): string {
  return Array.from({ length: 32 }, () => byte).join(":");
}

function condition(status: string, reason: string): object {
  const lastTransitionTime = "2026-01-02T03:04:05Z";
  return { type: "Ready", status, reason, message: "It answers.", lastTransitionTime };
}

function read(path: string): Promise<KubeObject> {
  return bench.write("GET", path, undefined);
}

async function names(path: string): Promise<string[]> {
  const list = (await read(path)) as unknown as { items: KubeObject[] };
  return list.items.map(({ metadata }) => metadata.name ?? "");
}

async function declare(spec: object, name = "pve1"): Promise<void> {
  const secretRef = { namespace: "berth-system", name: "old" };
  await bench.write("POST", hypervisors, {
    apiVersion: "berth.dev/v1alpha1",
    kind: "Hypervisor",
    metadata: { name },
    spec: { type: "proxmox", credentials: { secretRef }, ...spec },
  });
}

describe("connect", () => {
  test("writes a Secret and a Hypervisor that names it, pinned and with its identity", async () => {
    const ran = await run("https://pve1.lan:8006", "--fingerprint", pin, ...token);
    assert.equal(ran.code, 0, ran.text);
    const { spec } = await read(`${hypervisors}/pve1`);
    assert.partialDeepStrictEqual(spec, {
      type: "proxmox",
      endpoints: ["https://pve1.lan:8006"],
      credentials: { secretRef: { namespace: "berth-system", name: "pve1" } },
      tls: { fingerprints: [pin] },
      systemId,
    });
    const { data } = await read(`${secrets}/pve1`);
    const base64 = (text: string): string => Buffer.from(text).toString("base64");
    assert.deepEqual(data, { tokenId: base64("berth@pve!prod"), tokenSecret: base64("uuid") });
    assert.match(ran.text, /ready: Berth uses the Hypervisor pve1/);
    assert.doesNotMatch(ran.text, /uuid/, "the secret is not shown");
    assert.deepEqual(asked.questions, []);
  });

  test("asks for certificate and token, and takes only yes for yes", async () => {
    isPresent = true;
    bench.environment.clear();
    answers = ["nope"];
    const refused = await run("pve1.lan");
    assert.equal(refused.code, 1);
    assert.match(refused.text, /SHA-256 +AA:AA/);
    assert.match(refused.text, /not confirmed: nothing was sent or written/);
    assert.equal(asked.examined.length, 0, "no token was sent");
    answers = ["yes", "", "typed"];
    const ran = await run("pve1.lan", "pve2.lan");
    assert.equal(answers.length, 0, "the same certificate is shown once");
    assert.equal(ran.code, 0, ran.text);
    assert.match(ran.text, /pveum user token add berth@pve berth --privsep 1/);
    assert.deepEqual(asked.examined[0]?.credentials, {
      tokenId: "berth@pve!berth",
      tokenSecret: "typed",
    });
    assert.doesNotMatch(ran.text, /typed/);
  });

  test("refuses to guess where nobody can be asked", async () => {
    const certificateRefused = await run("pve1.lan", ...token);
    assert.equal(certificateRefused.code, 1);
    assert.match(certificateRefused.text, new RegExp(`give --fingerprint ${pin} if it is`));
    bench.environment.clear();
    const secretRefused = await run("pve1.lan", "--yes", ...token);
    assert.equal(secretRefused.code, 64);
    assert.match(secretRefused.text, /--token-file FILE .* or in BERTH_TOKEN_SECRET/);
    const idRefused = await run("pve1.lan", "--yes");
    assert.match(idRefused.text, /--token-id is missing/);
    assert.deepEqual(await names(hypervisors), []);
  });

  test("takes the secret from a file or standard input, with or without the id", async () => {
    bench.environment.clear();
    bench.files.set("/home/token", "berth@pve!file=from-file\n");
    bench.input = '{"full-tokenid":"berth@pve!json","value":"from-json"}';
    await run("pve1.lan", "--yes", "--token-file", "token");
    await run("pve1.lan", "--yes", "--token-file", "-");
    await run("pve1.lan", "--yes", "--token-file", "token", ...token);
    assert.deepEqual(
      asked.examined.map(({ credentials }) => Object.values(credentials).join(" ")),
      ["berth@pve!file from-file", "berth@pve!json from-json", "berth@pve!prod from-file"],
    );
    assert.match((await run("pve1.lan", "--yes", "--token-file", "no")).text, /there is no .*no/);
  });

  test("never repeats a secret that was put where it does not belong", async () => {
    const ran = await run("pve1.lan", "--yes", "--token-id", "berth@pve!x=5ecret");
    assert.equal(ran.code, 64);
    assert.doesNotMatch(ran.text, /5ecret/);
  });

  test("writes nothing while a person has to mend something, unless told to", async () => {
    const commands = ["pveum role add Berth"];
    const lacking = { check: "Rights", level: "problem", message: "lacks", commands } as const;
    diagnosis = { ...well, findings: [lacking] };
    const refused = await run("pve1.lan", "--yes", ...token);
    assert.equal(refused.code, 1);
    assert.match(refused.text, /problem +rights +lacks\n +pveum role add Berth/);
    assert.match(refused.text, /nothing was written/);
    assert.deepEqual([await names(hypervisors), await names(secrets)], [[], []]);
    const forced = await run("pve1.lan", "--yes", "--force", ...token);
    assert.equal(forced.code, 0, forced.text);
    assert.deepEqual(await names(hypervisors), ["pve1"]);
  });

  test("a node that is down does not keep it from being declared", async () => {
    const down = { check: "Nodes", level: "problem", message: "pve2 is down" } as const;
    diagnosis = { ...well, findings: [down] };
    assert.equal((await run("pve1.lan", "--yes", ...token)).code, 0);
  });

  test("leaves a publicly trusted certificate unpinned: it is renewed every few weeks", async () => {
    probes["https://pve1.lan:8006"] = { is: "shown", certificate };
    const ran = await run("pve1.lan", ...token);
    assert.equal(ran.code, 0, ran.text);
    const { spec } = await read(`${hypervisors}/pve1`);
    assert.equal((spec as { tls?: object }).tls, undefined);
  });

  test("says of an endpoint that is silent or shows another certificate what to do", async () => {
    probes["https://pve1.lan:8006"] = { is: "silent", why: "nothing listens there" };
    const silent = await run("pve1.lan", "--yes", ...token);
    assert.match(silent.text, /pve1.lan:8006 cannot be reached: nothing listens there/);
    probes = {};
    const other = await run("pve1.lan", "--fingerprint", otherPin, ...token);
    assert.match(other.text, /shows the certificate AA:.* not the one that you gave/);
    const refusal = "SELF_SIGNED_CERT_IN_CHAIN";
    probes["https://pve1.lan:8006"] = { is: "shown", certificate, refusal };
    bench.files.set("/home/ca.pem", "-----BEGIN CERTIFICATE-----\n");
    const unsigned = await run("pve1.lan", "--ca", "ca.pem", ...token);
    assert.match(unsigned.text, /not signed by the authority in tls.ca/);
    bench.files.set("/home/ca.pem", "hello");
    const noPem = await run("pve1.lan", "--ca", "ca.pem", ...token);
    assert.match(noPem.text, /ca.pem holds no certificate/);
    assert.equal(asked.examined.length, 0, "the token never left");
  });

  test("again renews the same system, keeps what people set, and asks nothing new", async () => {
    assert.equal((await run("pve1.lan", "--yes", ...token)).code, 0);
    await bench.write("PATCH", `${hypervisors}/pve1`, {
      spec: { idRange: { first: 500, last: 600 } },
    });
    const before = (await read(`${secrets}/pve1`)).metadata.resourceVersion;
    const again = await run("pve1.lan", "pve2.lan", ...token);
    assert.equal(again.code, 0, again.text);
    const { spec } = await read(`${hypervisors}/pve1`);
    assert.partialDeepStrictEqual(spec, {
      endpoints: ["https://pve1.lan:8006", "https://pve2.lan:8006"],
      idRange: { first: 500, last: 600 },
    });
    const after = (await read(`${secrets}/pve1`)).metadata.resourceVersion;
    assert.notEqual(after, before, "else the token would not be used for the new endpoint");
    const writes = bench.requests.filter((request) => request.startsWith("PATCH ")).slice(-2);
    assert.deepEqual(writes, [`PATCH ${hypervisors}/pve1`, `PATCH ${secrets}/pve1`]);
  });

  test("from a pinned certificate to an authority leaves no pin behind", async () => {
    assert.equal((await run("pve1.lan", "--yes", ...token)).code, 0);
    probes["https://pve1.lan:8006"] = { is: "shown", certificate };
    bench.files.set("/home/ca.pem", "-----BEGIN CERTIFICATE-----\n");
    const ran = await run("pve1.lan", "--ca", "ca.pem", ...token);
    assert.equal(ran.code, 0, ran.text);
    const { spec } = await read(`${hypervisors}/pve1`);
    assert.deepEqual((spec as { tls: object }).tls, { ca: "-----BEGIN CERTIFICATE-----\n" });
  });

  test("keeps the name in the certificate, and takes a new one", async () => {
    assert.equal((await run("pve1.lan", "--yes", "--server-name", "pve.lan", ...token)).code, 0);
    const tlsOf = async (): Promise<unknown> => {
      return ((await read(`${hypervisors}/pve1`)).spec as { tls: object }).tls;
    };
    assert.deepEqual(await tlsOf(), { fingerprints: [pin], serverName: "pve.lan" });
    assert.equal((await run("pve1.lan", ...token)).code, 0);
    assert.deepEqual(await tlsOf(), { fingerprints: [pin], serverName: "pve.lan" });
    assert.equal((await run("pve1.lan", "--server-name", "x.lan", ...token)).code, 0);
    assert.deepEqual(await tlsOf(), { fingerprints: [pin], serverName: "x.lan" });
    assert.equal(asked.examined.at(-1)?.spec.tls?.serverName, "x.lan");
  });

  test("never takes another Hypervisor's name, system or Secret", async () => {
    const endpoints = ["https://elsewhere:8006"];
    await declare({ endpoints, systemId: "pve-root-ca:02" });
    assert.match((await run("pve1.lan", "--yes", ...token)).text, /pve1 is another system/);
    await declare({ endpoints }, "fresh");
    const fresh = await run("pve1.lan", "--yes", "--name", "fresh", ...token);
    assert.match(fresh.text, /the Hypervisor fresh is there, for https:\/\/elsewhere:8006/);
    await declare({ endpoints, systemId }, "twin");
    const twin = await run("pve1.lan", "--yes", "--name", "mine", ...token);
    assert.match(twin.text, /the Hypervisor twin is this system already: say --name twin/);
    await bench.write("DELETE", `${hypervisors}/twin`, {});
    const secret = { apiVersion: "v1", kind: "Secret", metadata: { name: "mine" } };
    await bench.write("POST", secrets, secret);
    const taken = await run("pve1.lan", "--yes", "--name", "mine", ...token);
    assert.match(taken.text, /a Secret berth-system\/mine that is not this connection's/);
    assert.ok(!(await names(hypervisors)).includes("mine"));
  });

  test("says so when the controllers do not take it up", async () => {
    const work = bench.run(connect, (call, machine) => runConnect(call, machine, tools), [
      "proxmox",
      "pve1.lan",
      "--yes",
      ...token,
    ]);
    const state = { isOver: false };
    void work.then(() => (state.isOver = true));
    while (!state.isOver) {
      for (let turn = 0; turn < 500; turn++) await Promise.resolve();
      bench.clock.advance(500);
    }
    const { code, notes } = await work;
    assert.equal(code, 1);
    assert.match(notes.join("\n"), /no controllers looked at it. See berth why hypervisor\/pve1/);
  });
});

test("addresses are read as people write them, and what is none is refused", () => {
  const same = [
    "pve1",
    "pve1:8006",
    "https://pve1",
    "https://pve1:8006/",
    "https://pve1/api2/json",
  ];
  for (const text of same) assert.equal(readEndpoint(text), "https://pve1:8006", text);
  assert.equal(readEndpoint("https://pve1:443"), "https://pve1:443");
  assert.equal(readEndpoint("https://[2001:db8::1]"), "https://[2001:db8::1]:8006");
  for (const text of ["", "http://pve1", "https://u:p@pve1", "https://pve1/x", "https://a b"]) {
    assert.throws(() => readEndpoint(text), CommandError, text);
  }
});

test("a name is made of the host's where it has one", () => {
  assert.equal(nameFor("https://pve1.example:8006", "proxmox"), "pve1");
  assert.equal(nameFor("https://192.0.2.1:8006", "proxmox"), "proxmox");
  assert.equal(nameFor("https://[2001:db8::1]:8006", "proxmox"), "proxmox");
  assert.throws(() => readName("Lab_1"), /cannot be one/);
});

test("a fingerprint is read in every form that tools print", () => {
  const bare = "ab".repeat(32);
  const wanted = fingerprintOf("AB");
  for (const text of [bare, wanted, wanted.toLowerCase(), `SHA256:${bare}`]) {
    assert.equal(readFingerprint(text), wanted);
  }
  assert.throws(() => readFingerprint("ab:cd"), /no SHA-256 fingerprint/);
});

test("a token's secret may come with its id", () => {
  assert.deepEqual(parseToken(" s \n"), { secret: "s" });
  assert.deepEqual(parseToken("a@pve!b=s"), { id: "a@pve!b", secret: "s" });
  assert.deepEqual(parseToken("PVEAPIToken=a@pve!b=s"), { id: "a@pve!b", secret: "s" });
});
