import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { limits } from "../../kernel/limits.ts";
import { ApiError } from "../../kernel/status.ts";
import { scanJson } from "./json-scan.ts";
import { gadget, openServer } from "./testing/server.ts";

const yaml = { "content-type": "application/yaml" };
const head = "apiVersion: berth.dev/v1\nkind: Gadget\nmetadata:\n  name: a\n";

test("YAML says the same as JSON", async () => {
  const server = await openServer();
  const body = `${head}spec:\n  size: 3\n  colour: "0123"\n`;
  const { status, body: created } = await server.ask("create", "gadgets", { headers: yaml, body });
  assert.equal(status, 201);
  assert.deepEqual(created.spec, { size: 3, colour: "0123" });
  for (const inBraces of [
    JSON.stringify(gadget("b")),
    "{kind: Gadget, apiVersion: berth.dev/v1, metadata: {name: c}}",
  ]) {
    const answer = await server.ask("create", "gadgets", { headers: yaml, body: inBraces });
    assert.equal(answer.status, 201, answer.text);
  }
});

test("YAML that would keep the parser busy for long is refused at once", async () => {
  const server = await openServer();
  const texts = [
    Array.from({ length: 90_000 }, (_, at) => `k${at}: v`).join("\n"),
    "- ".repeat(100_000),
    "{a: ".repeat(100_000),
    "a: b\n".repeat(300_000),
  ];
  for (const body of texts) {
    const refused = await server.refusal("create", "gadgets", { headers: yaml, body });
    assert.match(refused.message ?? "", /too many parts|nested deeper|limited to/);
  }
});

test("a YAML bomb is one clear sentence", async () => {
  const server = await openServer();
  const levels = Array.from({ length: 9 }, (_, at) => {
    const items =
      at === 0
        ? '"x"'
        : Array(9)
            .fill(`*a${at - 1}`)
            .join(",");
    return `  a${at}: &a${at} [${items}]`;
  });
  const body = `${head}spec:\n${levels.join("\n")}\n`;
  const refused = await server.refusal("create", "gadgets", { headers: yaml, body });
  assert.equal(refused.code, 400);
  assert.match(refused.message ?? "", /too many aliases/);
});

test("a thousand aliases of one small anchor are a bomb too", async () => {
  const server = await openServer();
  const aliases = Array(1000).fill("*x").join(",");
  const body = `${head}spec:\n  colour: &x red\n  parts: [${aliases}]\n`;
  const refused = await server.refusal("create", "gadgets", { headers: yaml, body });
  assert.equal(refused.code, 400);
});

test("bodies that are no objects are refused with 400", async () => {
  const server = await openServer();
  for (const body of ["", " ", "[]", "null", "3", '"x"', "{", '{"a":}', "\u0000", "{}garbage"]) {
    const refused = await server.refusal("create", "gadgets", { body });
    assert.equal(refused.code, 400, body);
    assert.match(refused.message ?? "", /^the object provided is unrecognized \(must be of type/);
  }
  const bytes = Uint8Array.of(0x7b, 0xff, 0xfe);
  assert.equal((await server.refusal("create", "gadgets", { body: bytes })).code, 400);
});

test("a refusal of malformed JSON does not quote what stands around the fault", async () => {
  const server = await openServer();
  const body = '{"kind":"Secret","apiVersion":"v1","data":{"password": hunter2}}';
  const refused = await server.refusal("create", "secrets", { body });
  assert.doesNotMatch(refused.message ?? "", /hunter/);
});

test("a refusal of a Secret does not quote how its body begins", async () => {
  const server = await openServer();
  for (const body of ["{hunter2", "hunter2", '"hunter2"']) {
    const refused = await server.refusal("create", "secrets", { body });
    const hex = Buffer.from("hunter2").toString("hex");
    assert.doesNotMatch(refused.message ?? "", new RegExp(`hunter2|${hex}`));
    assert.match(refused.message ?? "", /\(\d+ bytes\)$/);
  }
});

test("an unknown media type is refused with those that are known", async () => {
  const server = await openServer();
  const headers = { "content-type": "text/plain" };
  const refused = await server.refusal("create", "gadgets", { headers, body: gadget("a") });
  assert.equal(refused.code, 415);
  assert.equal(
    refused.message,
    "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml",
  );
  const protobuf = { "content-type": "application/vnd.kubernetes.protobuf" };
  const custom = await server.refusal("create", "gadgets", { headers: protobuf, body: "k8s\0" });
  assert.equal(custom.code, 415);
  const native = await server.refusal("create", "configmaps", { headers: protobuf, body: "k8s\0" });
  assert.equal(native.code, 400);
});

/** A protobuf field of bytes; all lengths here are below 128. */
function bytesField(number: number, ...parts: (Uint8Array | string)[]): Buffer {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return Buffer.concat([Uint8Array.of((number << 3) | 2, content.length), content]);
}

function protobufBody(kind: string, message: Uint8Array): Buffer {
  const type = bytesField(1, bytesField(1, "v1"), bytesField(2, kind));
  return Buffer.concat([Buffer.from("k8s\0"), type, bytesField(2, message)]);
}

test("Kubernetes' own kinds and the options of deletions come as protobuf, too", async () => {
  const server = await openServer();
  const headers = { "content-type": "application/vnd.kubernetes.protobuf" };
  const message = Buffer.concat([
    bytesField(1, bytesField(1, "c")),
    bytesField(2, bytesField(1, "key"), bytesField(2, "value")),
  ]);
  const body = protobufBody("ConfigMap", message);
  const created = await server.ask("create", "configmaps", { headers, body });
  assert.equal(created.status, 201, created.text);
  assert.deepEqual(created.body.data, { key: "value" });
  const foreground = protobufBody("DeleteOptions", bytesField(4, "Foreground"));
  const deleted = await server.ask("delete", "configmaps", {
    name: "c",
    headers,
    body: foreground,
  });
  assert.deepEqual(deleted.body.metadata.finalizers, ["foregroundDeletion"]);
});

test("what is too deep is refused before anything walks it", async () => {
  const server = await openServer();
  const deep = "[".repeat(200_000);
  assert.equal((await server.refusal("create", "gadgets", { body: deep })).code, 400);
  const nested = `${"[".repeat(limits.jsonDepth)}1${"]".repeat(limits.jsonDepth)}`;
  const body = JSON.stringify(gadget("a")).replace('"size":1', `"size":1,"parts":${nested}`);
  const refused = await server.refusal("create", "gadgets", { body });
  assert.match(refused.message ?? "", /nested deeper than 100 levels/);
  const yamlDeep = `${head}spec: ${"[".repeat(50_000)}`;
  const inYaml = await server.refusal("create", "gadgets", { headers: yaml, body: yamlDeep });
  assert.equal(inYaml.code, 400);
});

test("the version and kind in the body must be those of the URL", async () => {
  const server = await openServer();
  const wrongVersion = { ...gadget("a"), apiVersion: "berth.dev/v2" };
  assert.deepEqual(
    (await server.refusal("create", "gadgets", { body: wrongVersion })).message,
    "the API version in the data (berth.dev/v2) does not match the expected API version (berth.dev/v1)",
  );
  const wrongKind = await server.refusal("create", "gadgets", {
    body: { ...gadget("a"), kind: "Other" },
  });
  assert.equal(wrongKind.code, 422);
  assert.equal(
    wrongKind.message,
    'Other.berth.dev "a" is invalid: kind: Invalid value: "Other": must be Gadget',
  );
  const native = await server.refusal("create", "configmaps", {
    body: { apiVersion: "v1", kind: "Secret", metadata: { name: "a" } },
  });
  assert.equal(native.code, 400);
  assert.match(native.message ?? "", /^Secret in version "v1" cannot be handled as a ConfigMap: /);
});

test("Kubernetes' own kinds may leave out what they are, others may not", async () => {
  const server = await openServer();
  const { status, body } = await server.ask("create", "configmaps", {
    body: { metadata: { name: "a" } },
  });
  assert.equal(status, 201);
  assert.equal(body.kind, "ConfigMap");
  assert.equal(body.apiVersion, "v1");
  const refused = await server.refusal("create", "gadgets", { body: { metadata: { name: "a" } } });
  assert.equal(refused.code, 400);
  assert.match(refused.message ?? "", /Object 'Kind' is missing in/);
});

test("metadata of wrong types is refused, not guessed", async () => {
  const server = await openServer();
  const wrong: Record<string, unknown>[] = [
    { labels: { a: 1 } },
    { labels: [] },
    { annotations: "x" },
    { finalizers: "x" },
    { finalizers: [1] },
    { ownerReferences: [3] },
    { ownerReferences: [{ name: 1 }] },
    { generation: "1" },
    { creationTimestamp: "yesterday" },
    { uid: 5 },
    { managedFields: {} },
  ];
  for (const metadata of wrong) {
    const refused = await server.refusal("create", "gadgets", { body: gadget("a", { metadata }) });
    assert.equal(refused.code, 400, JSON.stringify(metadata));
    assert.match(refused.message ?? "", /^Gadget in version "v1" cannot be handled as a Gadget: /);
  }
  const labels = await server.refusal("create", "gadgets", {
    body: gadget("a", { metadata: { labels: { a: 1 } } }),
  });
  assert.match(
    labels.message ?? "",
    /json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string$/,
  );
  const notAnObject = { ...gadget("a"), metadata: 3 };
  assert.equal((await server.refusal("create", "gadgets", { body: notAnObject })).code, 400);
});

test("null and empty metadata mean absent", async () => {
  const server = await openServer();
  const metadata = { labels: null, annotations: {}, finalizers: [], creationTimestamp: null };
  const { body } = await server.ask("create", "gadgets", { body: gadget("a", { metadata }) });
  for (const field of Object.keys(metadata).slice(0, 3)) assert.ok(!(field in body.metadata));
});

test("strict field validation refuses unknown and repeated fields, and names them", async () => {
  const server = await openServer();
  const body =
    '{"apiVersion":"berth.dev/v1","kind":"Gadget","metadata":{"name":"a","nick":"x"},' +
    '"spec":{"size":1,"size":2,"foo":{"bar":1}}}';
  const refused = await server.refusal("create", "gadgets", {
    body,
    query: { fieldValidation: "Strict" },
  });
  assert.equal(refused.code, 400);
  assert.equal(
    refused.message,
    'Gadget in version "v1" cannot be handled as a Gadget: strict decoding error: ' +
      'duplicate field "spec.size", unknown field "metadata.nick", unknown field "spec.foo"',
  );
});

test("by default unknown fields are dropped with a warning, and on demand without one", async () => {
  const server = await openServer();
  const body = gadget("a", { spec: { size: 1, foo: 1 } });
  const warned = await server.ask("create", "gadgets", { body });
  assert.equal(warned.headers["warning"], '299 - "unknown field \\"spec.foo\\""');
  assert.deepEqual(warned.body.spec, { size: 1, colour: "red" });
  const quiet = await server.ask("create", "gadgets", {
    body: gadget("b", { spec: { foo: 1 } }),
    query: { fieldValidation: "Ignore" },
  });
  assert.equal(quiet.headers["warning"], undefined);
  assert.deepEqual(quiet.body.spec, { colour: "red" });
});

test("a key given twice in YAML is refused where strict, and the last one counts elsewhere", async () => {
  const server = await openServer();
  const body = `${head}spec:\n  size: 1\n  size: 2\n`;
  const refused = await server.refusal("create", "gadgets", {
    headers: yaml,
    body,
    query: { fieldValidation: "Strict" },
  });
  assert.match(refused.message ?? "", /line 7: key "size" already set in map/);
  const warned = await server.ask("create", "gadgets", { headers: yaml, body });
  assert.equal(warned.status, 201);
  assert.deepEqual(warned.body.spec, { size: 2, colour: "red" });
});

test("a member named __proto__ is data", async () => {
  const server = await openServer();
  const body =
    '{"metadata":{"name":"a","__proto__":{"x":1}},"__proto__":{"y":1},"data":{"__proto__":"z"}}';
  const answer = await server.ask("create", "configmaps", { body, query: { dryRun: "All" } });
  assert.equal(({} as Record<string, unknown>)["x"], undefined);
  assert.ok(answer.status < 500);
  const annotated = '{"metadata":{"name":"a","annotations":{"__proto__":"z"}}}';
  const refused = await server.refusal("create", "configmaps", { body: annotated });
  assert.equal(refused.code, 422);
});

test("options that Kubernetes does not know are refused in its words", async () => {
  const server = await openServer();
  const cases: [string, string][] = [
    ["dryRun=Some", 'dryRun: Unsupported value: []string{"Some"}: supported values: "All"'],
    [
      "fieldValidation=Maybe",
      'fieldValidation: Unsupported value: "Maybe": supported values: "", "Ignore", "Strict", "Warn"',
    ],
    [`fieldManager=${"x".repeat(129)}`, "fieldManager: Too long: may not be more than 128 bytes"],
  ];
  for (const [query, why] of cases) {
    const refused = await server.refusal("create", "gadgets", { body: gadget("a"), query });
    assert.equal(refused.code, 422);
    assert.equal(refused.message, `CreateOptions.meta.k8s.io "" is invalid: ${why}`);
  }
});

test("the scan of JSON finds the depth and every repeated member", () => {
  const text = '{"a":[{"b":1,"b":2}],"c":{"a\\"":1,"a\\"":{"x":"{\\"q\\":"}},"a":"]"}';
  assert.deepEqual(scanJson(text), {
    depth: 3,
    duplicates: ["a[0].b", 'c.a"', "a"],
  });
});

test("the scan agrees with the parser on any JSON", () => {
  const depthOf = (value: unknown): number => {
    if (typeof value !== "object" || value === null) return 0;
    return 1 + Math.max(0, ...Object.values(value).map(depthOf));
  };
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      assert.deepEqual(scanJson(JSON.stringify(value)), {
        depth: depthOf(JSON.parse(JSON.stringify(value))),
        duplicates: [],
      });
    }),
  );
});

test("no body, whatever it is, brings anything but an answer", async () => {
  const server = await openServer();
  const mutated = fc
    .tuple(fc.constant(JSON.stringify(gadget("a"))), fc.nat(200), fc.string({ maxLength: 3 }))
    .map(([text, at, part]) => text.slice(0, at) + part + text.slice(at + 1));
  const bodies = fc.oneof(fc.json(), fc.string(), mutated);
  const types = fc.constantFrom("application/json", "application/yaml");
  await fc.assert(
    fc.asyncProperty(bodies, types, async (body, type) => {
      const headers = { "content-type": type };
      try {
        await server.ask("create", "gadgets", { body, headers, query: { dryRun: "All" } });
      } catch (error) {
        assert.ok(error instanceof ApiError, String(error));
      }
    }),
    { numRuns: 500 },
  );
});
