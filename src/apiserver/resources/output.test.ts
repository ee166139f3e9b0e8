import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { negotiate } from "./negotiate.ts";
import { gadget, openServer, type TestServer } from "./testing/server.ts";

const table = "application/json;as=Table;v=v1;g=meta.k8s.io";
const oldTable = "application/json;as=Table;v=v1beta1;g=meta.k8s.io";
const partial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io";
const partialList = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
const protobuf = "application/vnd.kubernetes.protobuf";

interface Table {
  readonly kind: string;
  readonly apiVersion: string;
  readonly metadata: Record<string, unknown>;
  readonly columnDefinitions: { name: string; type: string; format: string; priority: number }[];
  readonly rows: { cells: unknown[]; object: Record<string, unknown> | null }[];
}

async function serverWithGadget(): Promise<TestServer> {
  const server = await openServer();
  const spec = { size: 4, parts: ["nut", "bolt"] };
  await server.ask("create", "gadgets", { body: gadget("a", { spec }) });
  return server;
}

test("a list as kubectl asks for it is a table with ages", async () => {
  const server = await serverWithGadget();
  server.clock.advance(5 * 60_000 + 3000);
  const accept = `${table},${oldTable},application/json`;
  const { body, headers } = await server.ask<Table>("list", "gadgets", { headers: { accept } });
  assert.equal(headers["content-type"], "application/json");
  assert.equal(body.kind, "Table");
  assert.equal(body.apiVersion, "meta.k8s.io/v1");
  assert.deepEqual(body.metadata, { resourceVersion: "3" });
  const columns = body.columnDefinitions.map(({ name, type, format, priority }) => {
    return `${name} ${type} ${format} ${priority}`.replace("  ", " - ");
  });
  assert.deepEqual(columns, [
    "Name string name 0",
    "Size integer - 0",
    "Parts string - 0",
    "Phase string - 1",
    "Age date - 0",
  ]);
  assert.deepEqual(body.rows[0]?.cells, ["a", 4, '["nut","bolt"]', null, "5m3s"]);
  const { kind, apiVersion, metadata, ...rest } = body.rows[0]?.object ?? {};
  assert.equal(kind, "PartialObjectMetadata");
  assert.equal(apiVersion, "meta.k8s.io/v1");
  assert.ok(metadata);
  assert.deepEqual(rest, {});
});

test("a table of Events begins with when and what, and has the name last", async () => {
  const server = await openServer();
  const accept = `${table},application/json`;
  const { body } = await server.ask<Table>("list", "events", { headers: { accept } });
  const names = body.columnDefinitions.map(({ name }) => name);
  assert.equal(names[0], "Last Seen");
  assert.equal(names.at(-1), "Name");
  assert.equal(names.filter((name) => name === "Name").length, 1);
});

test("a row carries the metadata, the object or nothing, as asked", async () => {
  const server = await serverWithGadget();
  const { body: object } = await server.ask("get", "gadgets", { name: "a" });
  const row = async (includeObject: string): Promise<unknown> => {
    const what = { headers: { accept: table }, query: { includeObject } };
    return (await server.ask<Table>("list", "gadgets", what)).body.rows[0]?.object;
  };
  assert.deepEqual(await row("Object"), object);
  assert.equal(await row("None"), null);
  assert.deepEqual(await row("Metadata"), {
    kind: "PartialObjectMetadata",
    apiVersion: "meta.k8s.io/v1",
    metadata: object.metadata,
  });
  const refused = await server.refusal("list", "gadgets", {
    headers: { accept: table },
    query: { includeObject: "Half" },
  });
  assert.equal(refused.code, 400);
  assert.match(refused.message ?? "", /^Unable to convert to Table as requested: includeObject: /);
});

test("one object is a table of one row, in either version", async () => {
  const server = await serverWithGadget();
  const what = { name: "a", headers: { accept: oldTable } };
  const { body } = await server.ask<Table>("get", "gadgets", what);
  assert.equal(body.apiVersion, "meta.k8s.io/v1beta1");
  assert.equal(body.rows.length, 1);
  assert.deepEqual(body.metadata, { resourceVersion: "3" });
});

test("pages of tables go on like pages of objects", async () => {
  const server = await serverWithGadget();
  await server.ask("create", "gadgets", { body: gadget("b") });
  const what = { headers: { accept: table }, query: { limit: "1" } };
  const { body } = await server.ask<Table>("list", "gadgets", what);
  assert.equal(body.metadata["remainingItemCount"], 1);
  assert.equal(typeof body.metadata["continue"], "string");
});

test("built-in kinds fill their own cells, and a kind without columns shows its age", async () => {
  const server = await openServer();
  await server.ask("create", "configmaps", { body: { metadata: { name: "m" }, data: { a: "b" } } });
  await server.ask("create", "notes", { body: { ...gadget("n"), kind: "Note" } });
  const headers = { accept: table };
  const maps = await server.ask<Table>("list", "configmaps", { headers });
  assert.deepEqual(maps.body.rows[0]?.cells, ["m", 1, "0s"]);
  const notes = await server.ask<Table>("list", "notes", { headers });
  assert.deepEqual(notes.body.rows[0]?.cells, ["n", "0s"]);
  assert.deepEqual(
    notes.body.columnDefinitions.map(({ name }) => name),
    ["Name", "Age"],
  );
});

test("metadata alone can be asked for, of one or of many", async () => {
  const server = await serverWithGadget();
  const { body: object } = await server.ask("get", "gadgets", { name: "a" });
  const headers = { accept: partial };
  const one = await server.ask("get", "gadgets", { name: "a", headers });
  const expected = {
    kind: "PartialObjectMetadata",
    apiVersion: "meta.k8s.io/v1",
    metadata: object.metadata,
  };
  assert.deepEqual(one.body, expected);
  const many = await server.ask("list", "gadgets", { headers: { accept: partialList } });
  assert.deepEqual(many.body, {
    kind: "PartialObjectMetadataList",
    apiVersion: "meta.k8s.io/v1",
    metadata: { resourceVersion: "3" },
    items: [expected],
  });
  assert.equal((await server.refusal("list", "gadgets", { headers })).code, 406);
});

test("what is not served is skipped, and refused where nothing is left", async () => {
  const server = await serverWithGadget();
  const get = (accept: string) => server.ask("get", "gadgets", { name: "a", headers: { accept } });
  for (const accept of [
    "",
    "*/*",
    "application/*",
    `${protobuf},application/json`,
    "a/b, */*;q=0.1",
  ]) {
    const answer = await get(accept);
    assert.equal(answer.status, 200, accept);
    assert.equal(answer.headers["content-type"], "application/json");
  }
  for (const accept of [protobuf, "text/html", "application/json;as=Cake;v=v1;g=meta.k8s.io"]) {
    const refused = await get(accept);
    assert.equal(refused.status, 406, accept);
  }
  const { body } = await get("text/html");
  assert.equal(
    (body as unknown as { message: string }).message,
    "only the following media types are accepted: application/json, application/yaml",
  );
});

test("the better quality wins over the earlier place", () => {
  const ask = { headers: { accept: "application/json;q=0.5,application/yaml" } };
  const query = new URLSearchParams();
  assert.equal(negotiate({ ...ask, query }, "one").encoding, "yaml");
});

test("YAML is written where it is asked for", async () => {
  const server = await serverWithGadget();
  const headers = { accept: "application/yaml" };
  const { text, headers: answered } = await server.ask("get", "gadgets", { name: "a", headers });
  const { body } = await server.ask("get", "gadgets", { name: "a" });
  assert.equal(answered["content-type"], "application/yaml");
  assert.deepEqual(parse(text), body);
});

test("people get indented JSON, programs get the stored bytes", async () => {
  const server = await serverWithGadget();
  const plain = await server.ask("get", "gadgets", { name: "a" });
  const entry = server.store.get({ bucket: "berth.dev/gadgets", id: "default/a" });
  assert.equal(plain.text, `${Buffer.from(entry?.value ?? []).toString()}\n`);
  const pretty = await server.ask("get", "gadgets", { name: "a", query: { pretty: "true" } });
  assert.match(pretty.text, /^\{\n {2}"apiVersion": /);
  assert.deepEqual(pretty.body, plain.body);
  const headers = { "user-agent": "curl/8.0" };
  const curl = await server.ask("get", "gadgets", { name: "a", headers });
  assert.equal(curl.text, pretty.text);
  const query = { pretty: "false" };
  assert.equal(
    (await server.ask("get", "gadgets", { name: "a", headers, query })).text,
    plain.text,
  );
});

test("an object that is not there is not found", async () => {
  const server = await openServer();
  const refused = await server.refusal("get", "secrets", { name: "none" });
  assert.deepEqual(refused, {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: 'secrets "none" not found',
    reason: "NotFound",
    details: { name: "none", kind: "secrets" },
    code: 404,
  });
});

test("warnings cannot break out of their header", async () => {
  const server = await openServer();
  const body = gadget("a", { spec: { 'x"\r\nset-cookie: ÿ\u{1f4a9}': 1 } });
  const { headers } = await server.ask("create", "gadgets", { body });
  assert.match(headers["warning"] ?? "", /^[\x20-\x7e]+$/);
});
