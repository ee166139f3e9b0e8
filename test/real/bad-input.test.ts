import assert from "node:assert/strict";
import { before, after, test } from "node:test";
import { type Berth, runBerth, startBerth, temporaryFolder } from "./support/berth.ts";
import { type Ask, bodyOf, connect, type Http } from "./support/http.ts";
import "./support/cleanup.ts";

const machines = "/apis/berth.dev/v1alpha1/namespaces/default/virtualmachines";
const folder = temporaryFolder("bad-input");
let berth: Berth;
let http: Http;

before(async () => {
  berth = await startBerth({ data: folder.path });
  http = connect(berth);
});

after(async () => {
  http.close();
  await berth.stop();
  folder.remove();
});

function machine(spec: Record<string, unknown>): Record<string, unknown> {
  return {
    apiVersion: "berth.dev/v1alpha1",
    kind: "VirtualMachine",
    metadata: { name: "bad" },
    spec: {
      hypervisorRef: { name: "demo" },
      cpu: { cores: 1 },
      memory: { size: "1Gi" },
      source: { blank: {} },
      disks: [{ name: "root", size: "10Gi" }],
      ...spec,
    },
  };
}

const cases: Record<string, { ask: Ask; status: number; says: RegExp }> = {
  "an unknown field": {
    ask: {
      method: "POST",
      path: `${machines}?fieldValidation=Strict`,
      body: machine({ colour: 1 }),
    },
    status: 400,
    says: /unknown field "spec\.colour"/,
  },
  "two sources": {
    ask: {
      method: "POST",
      path: machines,
      body: machine({ source: { blank: {}, image: { name: "a" } } }),
    },
    status: 422,
    says: /exactly one/i,
  },
  "no source": {
    ask: { method: "POST", path: machines, body: machine({ source: {} }) },
    status: 422,
    says: /source/,
  },
  "a 20 MB manifest": {
    ask: { method: "POST", path: machines, body: machine({ note: "x".repeat(20_000_000) }) },
    status: 413,
    says: /too large/i,
  },
  "YAML with a thousand aliases": {
    ask: { method: "POST", path: machines, raw: aliases(1_000), type: "application/yaml" },
    status: 400,
    says: /alias/i,
  },
  "a YAML bomb": {
    ask: { method: "POST", path: machines, raw: bomb(), type: "application/yaml" },
    status: 400,
    says: /alias/i,
  },
  "a wrong token": {
    ask: { path: machines, token: "berth_nonsense" },
    status: 401,
    says: /token/i,
  },
  "no token": {
    ask: { path: machines, token: null },
    status: 401,
    says: /Unauthorized|credentials/i,
  },
  "half a JSON document": {
    ask: { method: "POST", path: machines, raw: '{"apiVersion":' },
    status: 400,
    says: /JSON|unexpected end/i,
  },
  "another kind than the path says": {
    ask: {
      method: "POST",
      path: machines,
      body: { apiVersion: "v1", kind: "Secret", metadata: {} },
    },
    status: 400,
    says: /does not match/,
  },
};

for (const [name, { ask, status, says }] of Object.entries(cases)) {
  test(`${name} gives one clear sentence`, async () => {
    const reply = await http.ask(ask);
    assert.equal(reply.status, status, reply.text);
    const told = bodyOf(reply);
    assert.equal(told.kind, "Status");
    assert.match(told.message, says);
    assert.doesNotMatch(told.message, /\n/);
    const list = bodyOf(await http.ask({ path: machines }));
    assert.deepEqual(list.items, [], "something was stored");
  });
}

test("a wrong command line gives one sentence and exit code 64", async () => {
  for (const args of [["upp"], ["up", "--colour"], ["up", "--port", "many"], ["backup"]]) {
    const ran = await runBerth(args, { cwd: folder.path });
    assert.equal(ran.code, 64, `${args.join(" ")}: ${ran.stderr}`);
    assert.equal(ran.stderr.trim().split("\n").length, 1, ran.stderr);
    assert.doesNotMatch(ran.stderr, /\n\s+at /);
  }
});

function aliases(count: number): string {
  const uses = Array.from({ length: count }, (_, i) => `    k${i}: *a`).join("\n");
  return `apiVersion: berth.dev/v1alpha1\nkind: VirtualMachine\nmetadata:\n  name: &a bad\n  labels:\n${uses}\n`;
}

function bomb(): string {
  const levels = Array.from({ length: 9 }, (_, i) => {
    const previous = i === 0 ? '"lol"' : `*l${i - 1}`;
    return `l${i}: &l${i} [${Array.from({ length: 9 }, () => previous).join(", ")}]`;
  });
  return `apiVersion: berth.dev/v1alpha1\nkind: VirtualMachine\n${levels.join("\n")}\n`;
}
